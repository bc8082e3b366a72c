package recorder

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
	"sync"
)

// Suffix ends the name of every trace.
const Suffix = ".trace.jsonl"

// Check makes the directory and says whether files can be written there, so that whoever asks for
// traces hears of a mistake before anything is served. One that is full is no mistake: whoever
// would record there says so, and serves.
func Check(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("recorder: %w; traces need a directory that can be written to", err)
	}
	f, err := os.CreateTemp(dir, ".check-*")
	if err != nil {
		return fmt.Errorf("recorder: %w; traces need a directory that can be written to", err)
	}
	return errors.Join(f.Close(), os.Remove(f.Name()))
}

// space says whether a directory has room for another trace (V4).
func space(dir string) error {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return fmt.Errorf("recorder: %w", err)
	}
	files, bytes := 0, int64(0)
	for _, e := range entries {
		if info, err := e.Info(); err == nil && strings.HasSuffix(e.Name(), Suffix) { // it may go meanwhile
			files++
			bytes += info.Size()
		}
	}
	if files >= FilesMax || bytes >= DirMax {
		return fmt.Errorf("recorder: %s has %d traces of %d MiB together, and takes at most %d of %d MiB: remove or move old ones",
			dir, files, bytes>>20, FilesMax, DirMax>>20)
	}
	return nil
}

// create makes the file of a life. Nobody else may read it: it tells when who asked for how much.
func create(dir string, l Life) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("recorder: %w", err)
	}
	if err := space(dir); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(dir, l.Role+"-"+l.Boot.String()+Suffix), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("recorder: %w: a boot id came twice", err)
	} else if err != nil {
		return nil, fmt.Errorf("recorder: %w", err)
	}
	return f, nil
}

// Build names the build of this process: a trace is checked against the code that made it.
func Build() string { return build() }

var build = sync.OnceValue(func() string {
	var settings []debug.BuildSetting
	if info, ok := debug.ReadBuildInfo(); ok {
		settings = info.Settings
	}
	return buildOf(settings, executable)
})

// buildUnknown stands for a revision that Go was not told.
const buildUnknown = "unknown"

// buildOf is the revision. When it is not known, or the tree was changed since, two builds can have
// the same: then what is executed tells them apart.
func buildOf(settings []debug.BuildSetting, open func() (io.ReadCloser, error)) string {
	revision, changed := buildUnknown, false
	for _, s := range settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), 12)]
		case s.Key == "vcs.modified":
			changed = s.Value == "true"
		}
	}
	if revision != buildUnknown && !changed {
		return revision
	}
	return revision + "+" + digestOf(open)
}

// digestOf names the program by what is in its file, or is empty.
func digestOf(open func() (io.ReadCloser, error)) string {
	f, err := open()
	if err != nil {
		return ""
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return ""
	}
	return hex.EncodeToString(sum.Sum(nil)[:6])
}

// executable opens the program that runs, also when another has its name by now.
func executable() (io.ReadCloser, error) {
	if f, err := os.Open("/proc/self/exe"); err == nil {
		return f, nil
	}
	name, err := os.Executable()
	if err != nil {
		return nil, err
	}
	return os.Open(name)
}
