package main

import (
	"fmt"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"

	"baton/engine/kernel"
)

func newVersion() *cobra.Command {
	return &cobra.Command{
		Use:   "version",
		Short: "Print what this binary is",
		Args:  noArguments,
		RunE: func(c *cobra.Command, _ []string) error {
			if err := kernel.Check(); err != nil { // what KERNELS asks for
				return err
			}
			fmt.Fprintln(c.OutOrStdout(), about())
			return nil
		},
	}
}

// about is what this binary is, on one line.
func about() string {
	v := version
	if info, ok := debug.ReadBuildInfo(); ok {
		v = build(version, info)
	}
	return fmt.Sprintf("baton %s, %s %s/%s, kernels %v", v, runtime.Version(), runtime.GOOS, runtime.GOARCH, kernel.Active())
}

// revisionDigits are as many as tell the commits of a large tree apart.
const revisionDigits = 12

// build is the version with the revision that it was built from, as far as the build knows.
func build(version string, info *debug.BuildInfo) string {
	if main := info.Main.Version; version == "dev" && main != "" && main != "(devel)" {
		version = main
	}
	revision, changed := "", ""
	for _, s := range info.Settings {
		switch {
		case s.Key == "vcs.revision":
			revision = s.Value[:min(len(s.Value), revisionDigits)]
		case s.Key == "vcs.modified" && s.Value == "true":
			changed = ", changed since"
		}
	}
	if revision == "" || strings.Contains(version, revision) { // a version made by Go has both
		return version
	}
	return fmt.Sprintf("%s (%s%s)", version, revision, changed)
}
