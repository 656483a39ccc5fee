// Package pipeline builds all outputs of a source tree: the artifact, packages, an image, and the statements about
// them.
//
// All outputs are made from one staged tree, so that they contain the same files and name the same content digest.
// Outputs get their final names only when all are complete; a build that fails leaves its log.
package pipeline

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/needs"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
	"github.com/corpus-agent/corpus-agent/packaging"
	"github.com/corpus-agent/corpus-agent/packaging/installed"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// Request is one build.
type Request struct {
	Source  string   // the tree
	Outputs []string // files to write: .tar.zst, .deb, .rpm, .oci.tar
	Version string   // in place of the one from the recipe or git
	Cache   string   // the directory in which base systems are kept
	OnTop   string   // the base of the image, in place of the recipe's
	Tool    string   // version of this program
	Commit  Commit   // of a tree that git fetched
	Time    time.Time
	Log     io.Writer    // also gets the output of builders; may be nil
	Waiting func(string) // called with what takes long: a base system, the programs of a builder; may be nil
	// Progress is called with the number of bytes of files that were packed into an artifact; may be nil.
	Progress func(output string, done, total int64)
	Render   installed.Render // renders templates for packages and images; nil if the build makes none
	Beside   Beside           // may be nil

	FailureLog string // the file for the log of a build that fails; by default beside the first output
	Unscanned  bool   // without looking for secrets
}

// Beside returns a writer for the bytes of an artifact that is being written to a file. It gets them after the file
// does.
type Beside func(file string) (io.Writer, error)

// Write makes a file whose bytes also go to the writer. A nil Beside is allowed.
func (b Beside) Write(file string, mode fs.FileMode, fill func(io.Writer) error) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_TRUNC, mode)
	if err != nil {
		return err
	}
	var w io.Writer = f
	if b != nil {
		var also io.Writer
		if also, err = b(file); err == nil {
			w = io.MultiWriter(f, also)
		}
	}
	if err == nil {
		err = fill(w)
	}
	return errors.Join(err, f.Close())
}

// Commit is the commit of a fetched tree, which has no repository.
type Commit struct {
	URL string
	ID  string
	Tag string
}

// Result is the outcome of a build.
type Result struct {
	needs.Release
	packaging.Summary
	Outputs    []string `json:"outputs"`
	Statements []string `json:"statements"`
}

// Mistake is an error in the request or in the tree's recipe, as opposed to a failure of the build.
type Mistake struct{ Err error }

func (m *Mistake) Error() string { return m.Err.Error() }
func (m *Mistake) Unwrap() error { return m.Err }

// build is a build under way.
type build struct {
	Request
	recipe recipe.Recipe
	result Result
	work   string // scratch directory, removed at the end
	stage  string
	files  []installed.File // files of packages and images outside the prefix
	base   string           // root of the base system, "" for this machine
	log    *bytes.Buffer

	unnamed bool // the tree has no version and gets a temporary one
}

// Make builds a tree and writes the outputs. A build that fails writes none of them, but a log beside the first
// one.
func Make(ctx context.Context, r Request) (Result, error) {
	work, done, err := durable.Scratch()
	if err != nil {
		return Result{}, err
	}
	defer done()
	b := newBuild(r, work)
	err = b.staged(ctx)
	if err == nil {
		err = b.write(ctx)
	}
	if err != nil {
		return Result{}, b.keepLog(err)
	}
	return b.result, nil
}

func newBuild(r Request, work string) *build {
	return &build{Request: r, work: work, stage: filepath.Join(work, "release"), log: &bytes.Buffer{}}
}

// staged makes the release without outputs.
func (b *build) staged(ctx context.Context) error {
	if err := b.prepare(ctx); err != nil {
		return &Mistake{err}
	}
	return b.run(ctx)
}

// keepLog writes the output of builders to a file beside the first output.
func (b *build) keepLog(err error) error {
	if b.log.Len() == 0 {
		return err
	}
	log := cmp.Or(b.FailureLog, b.Outputs[0]+".log")
	// Programs print the URLs that they use, and what else they were given.
	if logErr := durable.WriteFile(log, []byte(redact.URLs(b.log.String())), 0o600); logErr != nil {
		return err
	}
	return fmt.Errorf("%w (its log is %s)", err, log)
}
