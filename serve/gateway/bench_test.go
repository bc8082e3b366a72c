package gateway

import (
	"context"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// fastWorker answers every leg at once; decode with five pieces.
func fastWorker(b *testing.B, decode bool) string {
	answer := `{"accepted":true}` + "\n"
	if decode {
		answer += strings.Repeat(`{"text":"ab","ids":[1]}`+"\n", 5)
	}
	answer += `{"end":{"outcome":"success","finish":"stop","prompt_tokens":8,"output_tokens":5,"cached":0}}` + "\n"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		io.WriteString(w, answer)
	}))
	b.Cleanup(s.Close)
	return strings.TrimPrefix(s.URL, "http://")
}

// benchTarget returns a gateway's URL in front of fast workers, and the decode worker's own.
func benchTarget(b *testing.B) (gatewayURL, workerURL string) {
	g, err := New(Config{Model: "fake", Text: byteText{}, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	decode := fastWorker(b, true)
	for _, w := range []Worker{{Name: "p", Role: RolePrefill, HTTP: fastWorker(b, false), Link: "127.0.0.1:9", ContextTokens: 1000},
		{Name: "d", Role: RoleDecode, HTTP: decode, ContextTokens: 1000}} {
		if _, err := g.Join(context.Background(), w); err != nil {
			b.Fatal(err)
		}
	}
	s := httptest.NewUnstartedServer(nil)
	s.Config = g.Server()
	s.Listener = g.Listener(s.Listener)
	s.Start()
	b.Cleanup(func() {
		s.Close()
		g.Close()
	})
	return s.URL + "/v1/chat/completions", "http://" + decode + "/leg/decode"
}

func benchPost(b *testing.B, url string, c *http.Client) {
	resp, err := c.Post(url, "application/json", strings.NewReader(helloBody+`,"stream":true}`))
	if err != nil {
		b.Error(err)
		return
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
}

// The difference of the first two is what the gateway adds to a disaggregated request.
func BenchmarkRequest(b *testing.B) {
	gatewayURL, workerURL := benchTarget(b)
	c := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 64}}
	b.Cleanup(c.CloseIdleConnections)
	b.Run("worker", func(b *testing.B) {
		for b.Loop() {
			benchPost(b, workerURL, c)
		}
	})
	b.Run("gateway", func(b *testing.B) {
		for b.Loop() {
			benchPost(b, gatewayURL, c)
		}
	})
	b.Run("gateway16", func(b *testing.B) {
		b.SetParallelism(16 / 2)
		b.RunParallel(func(pb *testing.PB) {
			for pb.Next() {
				benchPost(b, gatewayURL, c)
			}
		})
	})
}
