package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"baton/engine/weights/safetensors"
)

// repoDir is the name of the directory of a whole model below hf/OWNER/REPO: a file of a hub cannot
// be called so.
const repoDir = "@main"

const (
	shardsMost     = 1024     // the largest models have about 200
	indexBytesMost = 64 << 20 // of model.safetensors.index.json; DeepSeek's has 9 MB
)

// Files of a model directory. A hub need not have the second kind.
var (
	repoNeeds = []string{safetensors.ConfigName, "tokenizer.json"}
	repoMay   = []string{"tokenizer_config.json", "generation_config.json", "chat_template.jinja"}
)

const (
	wholeName = "model.safetensors"
	indexName = "model.safetensors.index.json"
)

// repo is a model of a hub that is a directory: config.json, tokenizer.json and safetensors.
type repo struct {
	parts    []string // owner, name
	stage    string   // where files gather
	revision string   // which these are of, "" until the first has come
	there    bool     // the hub was seen to have that revision since a file was not there
	w        io.Writer
}

// pullRepo makes sure that the directory final exists (S1): all files gather in another one, of one
// revision, and only when safetensors can open that, it gets its final name.
func pullRepo(ctx context.Context, parts []string, final string, w io.Writer) error {
	if presentDir(final) {
		return nil
	}
	if err := os.MkdirAll(filepath.Dir(final), 0o755); err != nil {
		return err
	}
	unlock, err := lock(ctx, final+".lock", w)
	if err != nil {
		return err
	}
	defer unlock()
	if presentDir(final) { // somebody else pulled it while we waited
		return nil
	}
	r := &repo{parts: parts, stage: final + ".part", w: w}
	if err := r.resume(); err != nil {
		return err
	}
	if err := r.fetchAll(ctx); err != nil {
		return err
	}
	d, err := safetensors.Open(r.stage)
	if err != nil {
		return fmt.Errorf("what came is no model that can be read (%w); it is in %s, remove that to begin again", err, r.stage)
	}
	if err := d.Close(); err != nil {
		return err
	}
	if err := os.Rename(r.stage, final); err != nil {
		return err
	}
	os.Remove(filepath.Join(final, revisionName)) // nobody reads it there
	return nil
}

// resume goes on with what a pull that was cut has left, if it says of which revision that is; what
// does not could be of any, and is removed.
func (r *repo) resume() error {
	if b, err := os.ReadFile(r.revisionFile()); err == nil && isCommit(string(b)) {
		r.revision = string(b)
	} else if err := os.RemoveAll(r.stage); err != nil {
		return err
	}
	return os.MkdirAll(r.stage, 0o755)
}

func presentDir(path string) bool { return present(filepath.Join(path, safetensors.ConfigName)) }

func (r *repo) fetchAll(ctx context.Context) error {
	for i, name := range repoNeeds {
		err := r.fetch(ctx, name)
		if i == 0 && errors.Is(err, errNoFile) {
			return fmt.Errorf("%w, or there is no such repository", err)
		}
		if err != nil {
			return err
		}
	}
	for _, name := range repoMay {
		if err := r.fetch(ctx, name); err != nil && !errors.Is(err, errNoFile) {
			return err
		}
	}
	err := r.fetch(ctx, wholeName)
	if !errors.Is(err, errNoFile) {
		return err
	}
	if err := r.fetch(ctx, indexName); err != nil {
		if errors.Is(err, errNoFile) {
			return fmt.Errorf("the hub has neither %s nor %s: %w", wholeName, indexName, err)
		}
		return err
	}
	shards, err := r.shards()
	if err != nil {
		return fmt.Errorf("%s: %w", indexName, err)
	}
	for i, name := range shards {
		if r.w != nil {
			fmt.Fprintf(r.w, "file %d of %d\n", i+1, len(shards))
		}
		if err := r.fetch(ctx, name); err != nil {
			return err
		}
	}
	return nil
}

// shards returns the files that the index names.
func (r *repo) shards() ([]string, error) {
	path := filepath.Join(r.stage, indexName)
	st, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if st.Size() > indexBytesMost {
		return nil, fmt.Errorf("it has %d bytes, allowed are %d", st.Size(), indexBytesMost)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var index struct {
		WeightMap map[string]string `json:"weight_map"`
	}
	if err := json.Unmarshal(b, &index); err != nil {
		return nil, err
	}
	seen := map[string]bool{}
	var names []string
	for tensor, name := range index.WeightMap {
		if !segment.MatchString(name) || !strings.HasSuffix(name, ".safetensors") {
			return nil, fmt.Errorf("the tensor %.100q is said to be in %.200q, which is no name of a .safetensors file", tensor, name)
		}
		if !seen[name] {
			seen[name] = true
			names = append(names, name)
		}
	}
	if len(names) == 0 || len(names) > shardsMost {
		return nil, fmt.Errorf("it names %d files, needed are 1 to %d", len(names), shardsMost)
	}
	slices.Sort(names)
	return names, nil
}

// fetch brings one file, of the revision that the first one was of. A file that was fetched
// before the last pull was cut stays.
func (r *repo) fetch(ctx context.Context, name string) error {
	path := filepath.Join(r.stage, name)
	if present(path) {
		return nil
	}
	d, err := r.download(name)
	if err != nil {
		return err
	}
	d.what = "fetching " + name
	part := path + ".part"
	if err := d.fetch(ctx, part, r.w); err != nil {
		if errors.Is(err, errNoFile) {
			os.Remove(part)
			if gone := r.checkRevision(ctx); gone != nil {
				err = gone
			}
		}
		return fmt.Errorf("%s: %w", name, err)
	}
	switch {
	case r.revision == "" && d.commit == "":
		return fmt.Errorf("%s: the hub does not say of which revision it is (X-Repo-Commit), so the files could be of several; use a hub that does, or fetch the directory in another way and give its path", name)
	case r.revision == "":
		if err := os.WriteFile(r.revisionFile(), []byte(d.commit), 0o644); err != nil {
			return err
		}
		r.revision = d.commit
	case d.commit != "" && d.commit != r.revision:
		os.Remove(part)
		return fmt.Errorf("%s: the hub was asked for revision %s and sent %s", name, r.revision, d.commit)
	}
	return os.Rename(part, path)
}

// download prepares that of one file, of the revision of those that are there.
func (r *repo) download(name string) (*download, error) {
	return newDownload(append(slices.Clone(r.parts), name), cmp.Or(r.revision, "main"))
}

// checkRevision asks, once a file is not there, whether the revision is: a hub that has dropped it
// lacks every file, also those that a model need not have.
func (r *repo) checkRevision(ctx context.Context) error {
	if r.revision == "" || r.there {
		return nil
	}
	d, err := r.download(repoNeeds[0])
	if err != nil {
		return err
	}
	switch there, err := d.exists(ctx); {
	case err != nil:
		return err
	case !there:
		return fmt.Errorf("the hub has the revision %s no more, of which the files in %s are; remove that to begin again", r.revision, r.stage)
	}
	r.there = true
	return nil
}

// revisionName is the file that says of which revision those beside it are.
const revisionName = ".revision"

func (r *repo) revisionFile() string { return filepath.Join(r.stage, revisionName) }

// isCommit says whether s is the name of a revision: 40 hexadecimal digits.
func isCommit(s string) bool {
	return len(s) == 40 && strings.Trim(s, "0123456789abcdef") == ""
}
