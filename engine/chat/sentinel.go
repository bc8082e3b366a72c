package chat

import (
	"strconv"
	"strings"
	"unicode"
)

// A sentinel stands for the content of one message: two characters of a private plane around
// the message's number. Contents themselves never take part in the rendering with sentinels, so
// no client can forge one.
const (
	sentinelOpen  = "\U000F0000"
	sentinelClose = "\U000F0001"
)

// mark returns the stand-in for a content. White space at its ends stays outside of the
// sentinel, so that a template that trims contents trims it; a content of white space alone is
// its own stand-in, since templates ask whether there is a content.
func mark(i int, content string) string {
	head := len(content) - len(strings.TrimLeftFunc(content, unicode.IsSpace))
	if head == len(content) {
		return content
	}
	tail := len(strings.TrimRightFunc(content, unicode.IsSpace))
	return content[:head] + sentinelOpen + strconv.Itoa(i) + sentinelClose + content[tail:]
}

// part is a stretch of the prompt: a literal of the template, or a content.
type part struct {
	text    string
	content bool
}

// cut splits a rendering with sentinels into its parts and puts the contents in. whole is false
// if the template damaged a sentinel.
func cut(msgs []Message, marked string) (parts []part, whole bool) {
	for {
		before, rest, found := strings.Cut(marked, sentinelOpen)
		if strings.Contains(before, sentinelClose) {
			return nil, false
		}
		parts = append(parts, part{text: before})
		if !found {
			return parts, true
		}
		number, after, found := strings.Cut(rest, sentinelClose)
		i, err := strconv.Atoi(number)
		if !found || err != nil || i < 0 || i >= len(msgs) {
			return nil, false
		}
		parts = append(parts, part{text: strings.TrimSpace(msgs[i].Content), content: true})
		marked = after
	}
}

func join(parts []part) string {
	var b strings.Builder
	for _, p := range parts {
		b.WriteString(p.text)
	}
	return b.String()
}
