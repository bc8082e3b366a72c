package kernel

import (
	"fmt"
	"os"
	"strings"
)

// Level names a set of kernel implementations. Levels are ordered: a higher one needs more of the processor.
// Values are not part of any file or wire format, so that a level may be inserted between two others.
type Level uint8

const (
	Generic Level = 10 // plain Go
	AVX2    Level = 20 // AVX2, FMA and F16C
	AVX512  Level = 30 // AVX-512 F, BW, VL and DQ
	VNNI    Level = 40 // AVX512 and VNNI: int8 dot products
	Pairs   Level = 50 // VNNI and AVX512_BF16: bfloat16 dot products, which round activations to bfloat16
	AMX     Level = 60 // VNNI, and bfloat16 matrix tiles for the tokens of prompts (see Input.Tile)
)

// levelNames holds every level that this build could know, lowest first.
var levelNames = []struct {
	level Level
	name  string
}{{Generic, "generic"}, {AVX2, "avx2"}, {AVX512, "avx512"}, {VNNI, "vnni"}, {Pairs, "bf16"}, {AMX, "amx"}}

// String returns the name that KERNELS accepts.
func (l Level) String() string {
	for _, n := range levelNames {
		if n.level == l {
			return n.name
		}
	}
	return fmt.Sprintf("level(%d)", uint8(l))
}

// ParseLevel is the inverse of String.
func ParseLevel(s string) (Level, error) {
	var names []string
	for _, n := range levelNames {
		if n.name == s {
			return n.level, nil
		}
		names = append(names, n.name)
	}
	return 0, fmt.Errorf("kernel: %q is not a kernel level; allowed are %s", s, strings.Join(names, ", "))
}

// envLevel is the environment variable that forces a level, for tests and bug reports.
const envLevel = "KERNELS"

var (
	// tables holds the implementations that this processor can run, lowest level first. Generic is always there.
	tables = append([]*table{genericTable()}, archTables()...)
	// active is the table in use. It changes only in Use, which tests call while nothing else runs.
	active = bestTable()
	// errEnv is what was wrong with the environment variable, or nil.
	errEnv = useEnv(os.Getenv(envLevel))
)

// bestTable returns the highest level, except that Pairs is for processors where its instruction is faster than what
// it replaces: on Intel's it has half the rate of float32 FMA per column, on AMD's twice.
func bestTable() *table {
	for i := len(tables) - 1; i > 0; i-- {
		if tables[i].level != Pairs || fastPairs() {
			return tables[i]
		}
	}
	return tables[0]
}

// notes are the reasons why levels that the processor has are not in use.
var notes []string

// Notes returns, for the log, why a level that this processor has is not in use; mostly nothing.
func Notes() []string { return notes }

func useEnv(name string) error {
	if name == "" {
		return nil
	}
	l, err := ParseLevel(name)
	if err == nil {
		err = Use(l)
	}
	if err != nil {
		return fmt.Errorf("%w (from the environment variable %s; unset it to get the best level)", err, envLevel)
	}
	return nil
}

// Check returns an error if the environment variable KERNELS names a level that does not exist or that this
// processor cannot run. Callers that start an engine report it; until then the best level is in use.
func Check() error { return errEnv }

// Active returns the level in use.
func Active() Level { return active.level }

// Levels returns the levels that this processor can run, lowest first.
func Levels() []Level {
	out := make([]Level, len(tables))
	for i, t := range tables {
		out[i] = t.level
	}
	return out
}

// Use changes the level of the process. It must not be called while any kernel runs; it is meant for tests.
func Use(l Level) error {
	for _, t := range tables {
		if t.level == l {
			active = t
			return nil
		}
	}
	var names []string
	for _, t := range tables {
		names = append(names, t.level.String())
	}
	return fmt.Errorf("kernel: this processor cannot run level %s; it has %s", l, strings.Join(names, ", "))
}
