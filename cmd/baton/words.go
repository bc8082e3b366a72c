package main

import (
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"regexp"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"golang.org/x/term"
)

// packages are the names that our packages put in front of their errors. Whoever reads a log
// or the code wants them, whoever types a command does not.
const packages = "bench|chat|checkpoint|door|fleet|gateway|gguf|grammar|kernel|leg|model|observe|openai|recorder|room|safetensors|sample|store|tcp|" +
	"tokenizer|transfer|wire|worker"

var (
	packageFirst = regexp.MustCompile(`(?m)^((` + packages + `): )+`)
	// Further in, only what is no word of a sentence, and the name of a worker's own last line.
	packageLater = regexp.MustCompile(`: ((baton|checkpoint|fleet|gguf|recorder|safetensors|tcp): )+`)
)

// plain is an error in the words of somebody who typed a command.
func plain(err error) string {
	s := packageFirst.ReplaceAllString(err.Error(), "")
	return packageLater.ReplaceAllString(s, ": ")
}

// noArguments refuses arguments by the command's own name.
func noArguments(c *cobra.Command, args []string) error {
	if len(args) > 0 {
		return fmt.Errorf("%s takes no arguments, got %q; see %s --help", c.Name(), args[0], c.CommandPath())
	}
	return nil
}

// flagError says of a value that cannot be read what is wanted in its place, and of a flag that
// the command does not have where its flags are told.
func flagError(c *cobra.Command, err error) error {
	bad, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return fmt.Errorf("%w; see %s --help", err, c.CommandPath())
	}
	want := "another value"
	switch kind := bad.GetFlag().Value.Type(); {
	case errors.Is(err, strconv.ErrRange) && !strings.HasSuffix(kind, "Slice"):
		want = "a smaller number"
	case strings.HasPrefix(kind, "int") && strings.HasSuffix(kind, "Slice"):
		want = "whole numbers, as 1,2"
	case strings.HasPrefix(kind, "int"):
		want = "a whole number"
	case strings.HasPrefix(kind, "uint"):
		want = "a whole number, 0 or more"
	case strings.HasPrefix(kind, "float"):
		want = "a number"
	case kind == "bool":
		want = "true or false"
	case kind == "duration":
		want = "a time with its unit, as 5s, 2m or 1h"
		if v := bad.GetValue(); v != "" && strings.Trim(v, "0123456789") == "" {
			want = "a time with its unit, as " + v + "s"
		}
	}
	value := bad.GetValue()
	if value == "" {
		value = `""`
	}
	between := " "
	if bad.GetFlag().NoOptDefVal != "" { // it takes a value so alone
		between = "="
	}
	return fmt.Errorf("--%s%s%s: want %s", bad.GetFlag().Name, between, value, want)
}

// count writes a number with its noun.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// checkListen refuses an address that would listen on every interface without saying so: "" and
// ":8000" do, to Go.
func checkListen(flag, addr string) error {
	host, port, err := net.SplitHostPort(addr)
	switch {
	case addr == "" || err == nil && host == "":
		if port == "" {
			port = "8000"
		}
		return fmt.Errorf("--%s %q names no host: write 127.0.0.1:%s for this machine alone, 0.0.0.0:%s or [::]:%s for every interface", flag, addr, port, port, port)
	case err == nil && port == "":
		return fmt.Errorf("--%s %q names no port: write %s, or port 0 for a free one", flag, addr, net.JoinHostPort(host, "8000"))
	}
	return nil // what else may be wrong is said by whoever listens
}

// baseURL checks the address of a gateway and takes a last slash off, and the /v1 by which clients
// of OpenAI's API know it.
func baseURL(flag string) (string, error) {
	if !strings.Contains(flag, "://") {
		return "", fmt.Errorf("--url %q: http:// is missing; write http://%s", flag, flag)
	}
	u, err := url.Parse(flag)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
		return "", fmt.Errorf("--url %q: want http://HOST:PORT, as %s", flag, urlDefault)
	}
	return strings.TrimRight(strings.TrimSuffix(strings.TrimRight(flag, "/"), "/v1"), "/"), nil
}

// unreachable says in words why a gateway did not answer.
func unreachable(base string, err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err // without the address, which we say
	}
	return fmt.Errorf("no answer from %s: %w; is `baton serve` running there? (--url)", base, err)
}

// isTerminal says whether somebody sits there: /dev/null is a character device and no terminal.
func isTerminal(v any) bool {
	f, ok := v.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// modelHelp says what --model takes.
const modelHelp = "`NAME|PATH`: recall (embedded), smollm2, hf:OWNER/REPO/FILE, hf:OWNER/REPO, a GGUF file, or a directory with config.json,\n" +
	"tokenizer.json and safetensors; of the families llama, qwen2, qwen3 and gemma3"
