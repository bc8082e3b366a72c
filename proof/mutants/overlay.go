package mutants

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
)

// Overlay writes the mutant's files to dir, and the list by which "go test -overlay" takes them for
// those of the tree at root; it returns the list's name. Files named in without are not there for
// the compiler. All names are relative to root, with slashes.
func (m *Mutant) Overlay(root, dir string, without ...string) (list string, err error) {
	local := func(name string) string { return filepath.Join(root, filepath.FromSlash(name)) }
	changed, err := m.Apply(func(name string) (string, error) {
		b, err := os.ReadFile(local(name))
		return string(b), err
	})
	if err != nil {
		return "", err
	}
	replace := map[string]string{}
	for name, text := range changed {
		copied := filepath.Join(dir, strings.ReplaceAll(name, "/", "_"))
		if err := os.WriteFile(copied, []byte(text), 0o600); err != nil {
			return "", err
		}
		replace[local(name)] = copied
	}
	for _, name := range without {
		replace[local(name)] = ""
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	list = filepath.Join(dir, "overlay.json")
	return list, os.WriteFile(list, b, 0o600)
}
