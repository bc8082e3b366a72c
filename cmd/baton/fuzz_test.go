package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/spf13/cobra"

	"baton/engine/kernel"
	"baton/serve/openai"
)

// FuzzReadStream is a server that answers a chat with arbitrary bytes: what is printed is what
// is remembered, and an answer without its end is never taken for a whole one.
func FuzzReadStream(f *testing.F) {
	for _, s := range []string{
		"data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\ndata: [DONE]\n\n", "data:{\"choices\":[{\"delta\":{\"content\":\"a\"}}],\"error\":null}\r\n\r\n: c\r\ndata:[DONE]\r\n",
		"data: {\"error\":{\"message\":\"m\"}}\n\n", "data: {\"choices\":[]}\n\n", "data: {\n\ndata: [DONE]\n", ": keepalive\n\n", "event: x\ndata: [DONE]",
		"data: {\"choices\":[{\"delta\":{\"content\":\"\\u001b[2J\"}}]}\n",
	} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var out bytes.Buffer
		answer, err := readStream(bytes.NewReader(b), &out, false)
		if out.String() != answer {
			t.Fatalf("printed %q, remembered %q", out.String(), answer)
		}
		if err == nil && !bytes.Contains(b, []byte("[DONE]")) {
			t.Fatalf("%q is taken for a whole answer", b)
		}
		if err != nil && err.Error() == "" {
			t.Fatal("an error without words")
		}
	})
}

// FuzzChatReadsWhatTheGatewayWrites: both directions of a stream, in one test: whatever text
// the gateway sends as a stream, the chat prints.
func FuzzChatReadsWhatTheGatewayWrites(f *testing.F) {
	f.Add("Hel", "lo", true)
	f.Add("data: [DONE]\n\n", "\r\x00\u2028<&>", true)
	f.Add("\xff", "\xfe\n", false)
	f.Fuzz(func(t *testing.T, one, two string, ends bool) {
		a := openai.Answer{ID: "id", Model: "m", Request: &openai.Request{Endpoint: openai.Chat}}
		a.Request.Params.Logprobs = -1
		var stream []byte
		put := func(b []byte, err error) {
			if err != nil {
				t.Fatal(err)
			}
			stream = append(stream, b...)
		}
		put(a.Opening(0))
		put(a.Chunk(&openai.Piece{Text: one}, true))
		put([]byte(openai.Keepalive), nil)
		put(a.Chunk(&openai.Piece{Text: two, Finish: "stop"}, false))
		if ends {
			put(a.Closing(openai.Count(1, 2, 0)))
		} else {
			put(openai.ErrorEvent(&openai.Error{Message: "the worker is lost", Type: openai.TypeServer}), nil)
		}
		var out bytes.Buffer
		answer, err := readStream(bytes.NewReader(stream), &out, false)
		want := ""
		for _, s := range []string{one, two} {
			var clean string
			b, _ := json.Marshal(s)
			_ = json.Unmarshal(b, &clean)
			want += clean
		}
		if answer != want || out.String() != want || (err == nil) != ends || !ends && err.Error() != "the worker is lost" {
			t.Fatalf("%q, %v, want %q", answer, err, want)
		}
	})
}

// FuzzShow is a gateway that answers "baton ps" with arbitrary bytes.
func FuzzShow(f *testing.F) {
	f.Add([]byte(`{"requests":[{"rid":"r","room":"1","phase":"streaming","age_ms":-5}],"rooms":[{"room":"1","role":"decode","phase":"x"}],"workers":[{"name":"w","blocks":{"total":1},"queues":{"running":{"len":1,"oldest_ms":9223372036854775807}}}]}`), true)
	f.Add([]byte(`{}`), false)
	f.Add([]byte(`{"workers":[{}]}`), false)
	f.Add([]byte(`{"requests":[`+strings.Repeat(`{},`, 3*rowsMost)+`{}],"rooms":[`+strings.Repeat(`{},`, 3*rowsMost)+`{}]}`), false)
	f.Fuzz(func(t *testing.T, b []byte, all bool) {
		var out bytes.Buffer
		err := psFlags{all: all}.show(&out, b)
		if (err == nil) != (out.Len() > 0) {
			t.Fatalf("%d bytes of page from %d, %v", out.Len(), len(b), err)
		}
		// Each row is an object in b and one line, but for what a string brings along; without
		// all, a table of requests or rooms has rowsMost of them.
		lines, most := bytes.Count(out.Bytes(), []byte("\n")), bytes.Count(b, []byte("{"))
		if bytes.ContainsAny(b, "\\\f\v") {
			return
		}
		if heads := 10; lines > heads+most || !all && !bytes.Contains(b, []byte("workers")) && lines > heads+2*rowsMost {
			t.Fatalf("%d lines of %d objects:\n%s", lines, most, &out)
		}
	})
}

// FuzzFlags types arbitrary arguments at the commands that serve: what they refuse they name,
// and what they take is within the bounds that a fleet could serve with.
func FuzzFlags(f *testing.F) {
	for _, s := range []string{
		"--unified --threads 4", "--prefill -1", "--unified=2 --prefill -1 --decode 1", "--prefill 0 --decode -1", "--listen :8000 --kv-dtype f32", "--body-bytes 99999999999999999999", "--chunk-tokens 17 --max-batch 0",
		"--request-timeout 1h2m --drain-timeout 0s --sse-keepalive -1s", "--kv-tokens=15 x", "--unified=0 --", "--listen [::1 --model \x00",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, line string) {
		var flags serveFlags
		cmd := newServeOf(&flags)
		cmd.RunE = func(*cobra.Command, []string) error { return flags.check() }
		cmd.SilenceErrors, cmd.SilenceUsage = true, true
		cmd.SetArgs(strings.Fields(line))
		cmd.SetOut(&bytes.Buffer{})
		cmd.SetErr(&bytes.Buffer{})
		err := cmd.Execute()
		if strings.Contains(line, "-h") { // help is no error
			return
		}
		if err != nil {
			if err.Error() == "" {
				t.Fatal("an error without words")
			}
			return
		}
		if flags.running < 1 || flags.batch < 1 || flags.chunkTokens%16 != 0 || flags.timeout <= 0 || flags.drain <= 0 || flags.bodyBytes < bodyBytesLeast ||
			flags.prefill < 0 || flags.decode < 0 || flags.unified < 0 || flags.keepalive >= 0 && flags.keepalive < 100*time.Millisecond || kernel.Check() != nil {
			t.Fatalf("%q is taken: %+v", line, flags)
		}
	})
}
