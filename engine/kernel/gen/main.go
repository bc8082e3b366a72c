// Command gen prints the assembly of package kernel, and the Go declarations and tables that go with it.
//
// Each family of kernels has a file here and a file of output. The kernels of one family differ in the number of
// tokens that they serve at once; they are printed by one function with that number as its argument, which is also
// what makes invariant K1 (see package kernel) plain to see: nothing but the number of accumulators differs.
//
// The argument -dir names the directory to write to, by default the current one (go generate runs in engine/kernel).
package main

import (
	"flag"
	"log"
	"os"
	"path/filepath"
)

func main() {
	dir := flag.String("dir", ".", "directory to write to")
	flag.Parse()
	for name, text := range outputs() {
		if err := os.WriteFile(filepath.Join(*dir, name), text, 0o644); err != nil {
			log.Fatal(err)
		}
	}
}

// outputs returns the content of every generated file by name.
func outputs() map[string][]byte {
	stubs := newStubs()
	out := map[string][]byte{}
	for name, family := range map[string]func(*file){
		"quant_amd64.s":  quantKernels,
		"float_amd64.s":  floatKernels,
		"attend_amd64.s": attendKernels,
		"page8_amd64.s":  pageKernelsQ8,
		"tile_amd64.s":   tileKernels,
		"vec_amd64.s":    vecKernels,
	} {
		f := newFile(name)
		family(f)
		out[name] = f.text()
		stubs.parts[name] = f
	}
	out["stubs_amd64.go"] = stubs.text()
	return out
}
