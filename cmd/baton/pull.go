package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"baton/engine/weights/store"
)

func rootContext() context.Context { return context.Background() }

func newPull() *cobra.Command {
	return &cobra.Command{
		Use:   "pull MODEL",
		Short: "Bring a model onto this machine",
		Long: `Pull downloads a model into the cache, checks it, and prints where it is. A download that
was cut goes on where it stopped. $BATON_MODELS chooses another cache directory,
$HF_ENDPOINT another hub.`,
		Example: `  baton pull smollm2
  baton pull hf:bartowski/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct-Q8_0.gguf`,
		Args: cobra.ExactArgs(1),
		RunE: func(_ *cobra.Command, args []string) error {
			ctx, release := signal.NotifyContext(rootContext(), os.Interrupt, syscall.SIGTERM)
			defer release()
			path, err := store.Pull(ctx, args[0], os.Stderr)
			if err != nil {
				return err
			}
			fmt.Println(path)
			return nil
		},
	}
}
