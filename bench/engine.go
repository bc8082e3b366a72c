package bench

import (
	"context"
	"fmt"
	"io"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"time"

	"baton/engine/checkpoint"
	"baton/engine/kernel"
	"baton/engine/model"
)

// processorsSpare is what the engine's spinning threads leave to the rest of the process, as
// many as a worker spares: the figures are to be those of a worker.
const processorsSpare = 2

// Engine measures p on the engine; p.Model is a name or a file, as checkpoint.Open takes it.
// Stopping is as in Run: the run under way, and the loading of the model, are not cut.
func Engine(ctx context.Context, p Plan, progress io.Writer) ([]Result, error) {
	if err := p.Check(); err != nil {
		return nil, err
	}
	c, err := checkpoint.Open(p.Model)
	if err != nil {
		return nil, err
	}
	defer c.Close()
	for _, test := range p.Tests { // B2
		if err := model.CheckBench(test, c.Config.Context); err != nil {
			return nil, err
		}
	}
	most := slices.Max(p.Threads)
	if cpus := runtime.NumCPU(); most > cpus {
		fmt.Fprintf(progress, "%d threads will wait for each other (CPUs: %d); the figure says little\n", most, cpus)
	}
	before := runtime.GOMAXPROCS(0)
	runtime.GOMAXPROCS(max(before, most+processorsSpare))
	defer runtime.GOMAXPROCS(before)
	fmt.Fprintf(progress, "loading %s\n", p.Model)
	began := time.Now()
	m, err := c.Load(model.Options{Threads: most})
	if err != nil {
		return nil, err
	}
	defer m.Close()
	fmt.Fprintf(progress, "loaded in %.2f s, kernels %s\n", time.Since(began).Seconds(), kernel.Active())
	p.Model, p.Bytes = strings.TrimSuffix(filepath.Base(p.Model), ".gguf"), c.Weights.Size()
	return p.Run(ctx, func(test string, threads int) (float64, error) { return model.Bench(m, test, threads) }, progress)
}
