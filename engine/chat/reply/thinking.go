package reply

// Thinking says whether what was pushed so far ends inside of thoughts.
func (p *Parser) Thinking() bool { return false }
