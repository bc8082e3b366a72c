package reply

// scanner follows a JSON text byte by byte and says at the first that no JSON text goes on with.
type scanner struct {
	stack []byte // open brackets, outermost first
	at    place
	key   bool // the string under way is a key
	left  int  // hex digits of a \u that are to come
	lit   string
}

// place is where in the grammar of JSON a scanner stands.
type place uint8

const (
	wantValue  place = iota
	firstKey         // behind {
	wantKey          // behind a comma in an object
	wantColon        // behind a key
	firstValue       // behind [
	behind           // a value, inside of brackets or at the end
	inString
	inEscape
	inHex
	inLiteral
	numMinus
	numZero
	numInt
	numDot
	numFraction
	numE
	numSign
	numExponent
)

// depthMax is how deep arguments may nest; encoding/json takes more, no tool wants it.
const depthMax = 256

func blank(c byte) bool { return c == ' ' || c == '\t' || c == '\n' || c == '\r' }

// depth is how many brackets are open.
func (s *scanner) depth() int { return len(s.stack) }

// step takes a byte. False says that no JSON text goes on like that.
func (s *scanner) step(c byte) bool {
	switch s.at {
	case inString:
		switch {
		case c == '"' && s.key:
			s.at = wantColon
		case c == '"':
			s.at = behind
		case c == '\\':
			s.at = inEscape
		}
		return c >= ' '
	case inEscape:
		switch c {
		case '"', '\\', '/', 'b', 'f', 'n', 'r', 't':
			s.at = inString
		case 'u':
			s.at, s.left = inHex, 4
		default:
			return false
		}
		return true
	case inHex:
		if s.left--; s.left == 0 {
			s.at = inString
		}
		return c >= '0' && c <= '9' || c >= 'a' && c <= 'f' || c >= 'A' && c <= 'F'
	case inLiteral:
		if c != s.lit[0] {
			return false
		}
		if s.lit = s.lit[1:]; s.lit == "" {
			s.at = behind
		}
		return true
	}
	if s.at >= numMinus {
		if next, ok := number(s.at, c); ok {
			s.at = next
			return true
		}
		if !numberEnds(s.at) {
			return false
		}
		s.at = behind
	}
	if blank(c) {
		return true
	}
	return s.structure(c)
}

// structure takes a byte between the strings, numbers and literals, or the first of one.
func (s *scanner) structure(c byte) bool {
	switch s.at {
	case wantValue, firstValue:
		if c == ']' && s.at == firstValue {
			return s.close('[')
		}
		return s.value(c)
	case firstKey, wantKey:
		if c == '}' && s.at == firstKey {
			return s.close('{')
		}
		s.at, s.key = inString, true
		return c == '"'
	case wantColon:
		s.at = wantValue
		return c == ':'
	}
	switch { // behind a value
	case len(s.stack) == 0:
		return false
	case c == '}':
		return s.close('{')
	case c == ']':
		return s.close('[')
	case s.stack[len(s.stack)-1] == '{':
		s.at = wantKey
	default:
		s.at = wantValue
	}
	return c == ','
}

// close takes the end of what that bracket opened.
func (s *scanner) close(open byte) bool {
	top := len(s.stack) - 1
	if s.stack[top] != open {
		return false
	}
	s.stack, s.at = s.stack[:top], behind
	return true
}

func (s *scanner) value(c byte) bool {
	switch c {
	case '{', '[':
		s.stack = append(s.stack, c)
		s.at = firstValue
		if c == '{' {
			s.at = firstKey
		}
		return len(s.stack) <= depthMax
	case '"':
		s.at, s.key = inString, false
	case 't':
		s.at, s.lit = inLiteral, "rue"
	case 'f':
		s.at, s.lit = inLiteral, "alse"
	case 'n':
		s.at, s.lit = inLiteral, "ull"
	case '-':
		s.at = numMinus
	case '0':
		s.at = numZero
	default:
		s.at = numInt
		return c >= '1' && c <= '9'
	}
	return true
}

// number is where a number stands behind one more byte; false: c is none of it.
func number(at place, c byte) (place, bool) {
	digit := c >= '0' && c <= '9'
	switch at {
	case numMinus:
		if c == '0' {
			return numZero, true
		}
		return numInt, digit
	case numZero, numInt:
		switch {
		case c == '.':
			return numDot, true
		case c == 'e' || c == 'E':
			return numE, true
		}
		return numInt, digit && at == numInt
	case numDot:
		return numFraction, digit
	case numFraction:
		if c == 'e' || c == 'E' {
			return numE, true
		}
		return numFraction, digit
	case numE:
		if c == '+' || c == '-' {
			return numSign, true
		}
		return numExponent, digit
	}
	return numExponent, digit // behind the sign, or a digit
}

// numberEnds says whether a number may end there.
func numberEnds(at place) bool {
	return at == numZero || at == numInt || at == numFraction || at == numExponent
}
