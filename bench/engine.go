package bench

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"

	"baton/engine/model"
	"baton/engine/weights/store"
)

// processorsSpare is what the engine's spinning threads leave to the rest of the process, as
// many as a worker spares: the figures are to be those of a worker.
const processorsSpare = 2

// Engine measures p on the engine; p.Model is a name or a file, as store.Resolve takes it.
// Stopping is as in Run: the run under way, and the loading of the model, are not cut.
func Engine(ctx context.Context, p Plan, progress io.Writer) ([]Result, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	src, err := store.Resolve(p.Model)
	if err != nil {
		return nil, err
	}
	f, err := src.Open()
	if err != nil {
		return nil, err
	}
	defer f.Close()
	most := slices.Max(p.Threads)
	if cpus := runtime.NumCPU(); most > cpus {
		fmt.Fprintf(progress, "%d threads will wait for each other (CPUs: %d); the figure says little\n", most, cpus)
	}
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(max(before, most+processorsSpare))
	defer runtime.GOMAXPROCS(before)
	fmt.Fprintf(progress, "loading %s\n", src.Name)
	m, err := model.Open(f, model.Options{Threads: most})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	p.Model = strings.TrimSuffix(filepath.Base(src.Name), ".gguf")
	return p.Run(ctx, func(test string, threads int) (float64, error) { return model.Bench(m, test, threads) }, progress)
}
