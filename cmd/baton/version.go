package main

import (
	"fmt"
	"runtime"
	"runtime/debug"

	"github.com/spf13/cobra"

	"baton/engine/kernel"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print what this binary is",
		Args:  cobra.NoArgs,
		RunE: func(*cobra.Command, []string) error {
			if err := kernel.Check(); err != nil { // what KERNELS asks for
				return err
			}
			v := version
			if info, ok := debug.ReadBuildInfo(); ok && v == "dev" && info.Main.Version != "" {
				v = info.Main.Version
			}
			fmt.Printf("baton %s, %s %s/%s, kernels %v\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH, kernel.Active())
			return nil
		},
	}
}
