package tokenizer

import (
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// The two large parts of tokenizer.json, a vocabulary of 262,144 names and half a million pairs,
// are read by the few lines here, ten times as fast as by reflection. They stand on what the
// package json has checked already: the text is valid JSON.

// jsonToken is one entry of a vocabulary.
type jsonToken struct {
	name string
	id   int64
}

// jsonVocab is the vocabulary of a BPE model; other kinds of model have a list there, which is told
// by its type.
type jsonVocab []jsonToken

func (v *jsonVocab) UnmarshalJSON(b []byte) error {
	if b[0] != '{' {
		return nil
	}
	s := scanner{string(b), 1}
	for s.more('}') {
		name, err := s.text()
		if err != nil {
			return err
		}
		s.next() // the colon
		id, err := strconv.ParseInt(s.plain(), 10, 64)
		if err != nil {
			return fmt.Errorf("the id of %.200q is not an integer", name)
		}
		*v = append(*v, jsonToken{name, id})
	}
	return nil
}

// jsonMerges are pairs of names: strings with a space between the two or, where names may hold
// spaces, lists of two.
type jsonMerges [][2]string

func (m *jsonMerges) UnmarshalJSON(b []byte) error {
	if b[0] != '[' {
		return errors.New("merges are no list")
	}
	s := scanner{string(b), 1}
	for n := 0; s.more(']'); n++ {
		if s.s[s.at] == '[' {
			s.at++
			var pair [2]string
			count := 0
			for ; s.more(']'); count++ {
				name, err := s.text()
				if err != nil {
					return err
				}
				pair[min(count, 1)] = name
			}
			if count != 2 || pair[0] == "" || pair[1] == "" {
				return fmt.Errorf("merge %d is a list of %d (%.200q), needed are two tokens", n, count, pair[:min(count, 2)])
			}
			*m = append(*m, pair)
			continue
		}
		line, err := s.text()
		if err != nil {
			return err
		}
		if n == 0 && strings.HasPrefix(line, "#version") {
			continue
		}
		left, right, ok := cutMerge(line)
		if !ok {
			return fmt.Errorf("merge %d is %.200q, needed are two tokens with one space between", n, line)
		}
		*m = append(*m, [2]string{left, right})
	}
	return nil
}

// scanner reads valid JSON.
type scanner struct {
	s  string
	at int
}

// next returns the next byte that is not white space and goes behind it.
func (s *scanner) next() byte {
	for s.at < len(s.s) {
		b := s.s[s.at]
		s.at++
		if b > ' ' {
			return b
		}
	}
	return 0
}

// more says whether another element comes before the end of a list or an object, and goes to it.
func (s *scanner) more(end byte) bool {
	switch b := s.next(); b {
	case end, 0:
		return false
	case ',':
		s.next()
	}
	s.at--
	return true
}

// text reads a string.
func (s *scanner) text() (string, error) {
	start := s.at
	if s.at >= len(s.s) || s.s[s.at] != '"' {
		return "", fmt.Errorf("%.40q stands where a string is needed", s.s[s.at:])
	}
	escaped := false
	for s.at++; s.at < len(s.s); s.at++ {
		switch s.s[s.at] {
		case '"':
			s.at++
			if !escaped {
				return s.s[start+1 : s.at-1], nil
			}
			var out string
			err := json.Unmarshal([]byte(s.s[start:s.at]), &out)
			return out, err
		case '\\':
			s.at++
			escaped = true
		}
	}
	return "", errors.New("a string has no end")
}

// plain reads up to the end of a value that is neither a string, a list nor an object.
func (s *scanner) plain() string {
	s.next()
	start := s.at - 1
	for s.at < len(s.s) && s.s[s.at] > ' ' && s.s[s.at] != ',' && s.s[s.at] != '}' && s.s[s.at] != ']' {
		s.at++
	}
	return s.s[start:s.at]
}
