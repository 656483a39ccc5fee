package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Main runs the program and gives its exit code.
func Main(ctx context.Context, args []string, streams cli.IO) int {
	return cli.Run(ctx, newRoot(streams), args, streams)
}

// program is what all commands share.
type program struct {
	cli.IO
	store   string
	keys    string
	json    bool
	verbose bool
}

func newRoot(streams cli.IO) *cobra.Command {
	p := &program{IO: streams}
	root := &cobra.Command{
		Use:   "corpus",
		Short: "Build, sign, publish and promote what hosts deploy",
		Long: `corpus makes signed artifacts of source trees and puts them where hosts fetch them from.

A store is set up once. After that, publishing uploads an artifact and points a channel at it, and
promoting points another channel at the same bytes.`,
		Example: `  corpus keys new --keys keys
  corpus store init --store file:///srv/store --keys keys
  corpus build ./myapp -o myapp.tar.zst
  corpus publish myapp 1.0 myapp.tar.zst --store file:///srv/store --keys keys --channel testing
  corpus promote myapp testing production --store file:///srv/store --keys keys`,
		Version: cli.Version,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&p.store, "store", streams.Getenv("CORPUS_STORE"), "URL of the store (CORPUS_STORE)")
	flags.StringVar(&p.keys, "keys", streams.Getenv("CORPUS_KEYS"), "directory of keys (CORPUS_KEYS)")
	flags.BoolVar(&p.json, "json", false, "answer in JSON")
	flags.BoolVarP(&p.verbose, "verbose", "v", false, "say more")
	root.AddCommand(p.bootstrapCommand(), p.pushCommand(), p.keysCommand(), p.storeCommand(), p.buildCommand(), p.publishCommand(), p.promoteCommand(),
		p.listCommand(), p.verifyCommand(), p.projectCommand())
	return root
}

// answer writes a result as JSON, or as text.
func (p *program) answer(result any, text string, args ...any) error {
	if p.json {
		return p.JSON(result)
	}
	_, err := fmt.Fprintf(p.Out, text+"\n", args...)
	return err
}

// explain writes a line for -v.
func (p *program) explain(text string, args ...any) {
	if p.verbose {
		fmt.Fprintf(p.Err, text+"\n", args...)
	}
}

func (p *program) openStore() (store.Store, error) {
	if p.store == "" {
		return nil, exit.WithCode(exit.Usage, diag.WithHint(errors.New("no store was given"), "give --store URL, or set CORPUS_STORE"))
	}
	s, err := stores.Open(p.store, stores.Options{})
	return s, exit.WithCode(exit.Usage, err)
}

func (p *program) keyring() (publish.Keyring, error) {
	if p.keys == "" {
		return publish.Keyring{}, exit.WithCode(exit.Usage, diag.WithHint(errors.New("no keys were given"), "give --keys DIR, or set CORPUS_KEYS"))
	}
	return publish.Keyring{Dir: p.keys}, nil
}

// publisher opens the store with the keys at hand. What the publisher has seen of the store lies
// beside the keys.
func (p *program) publisher() (*publish.Publisher, error) {
	keys, err := p.keyring()
	if err != nil {
		return nil, err
	}
	s, err := p.openStore()
	if err != nil {
		return nil, err
	}
	return &publish.Publisher{Store: s, Keys: keys, Seen: filepath.Join(keys.Dir, "seen")}, nil
}

// pinned is publisher for a keyring whose owner may not have set the store up: its root.json, given
// to them by who did, is what they trust.
func (p *program) pinned() (*publish.Publisher, error) {
	publisher, err := p.publisher()
	if err != nil || trust.Pinned(publisher.Seen) {
		return publisher, err
	}
	file := filepath.Join(p.keys, publish.RootName)
	root, err := os.ReadFile(file)
	if err != nil {
		return nil, exit.WithCode(exit.Usage, diag.WithHint(fmt.Errorf("reading the root of trust: %w", err),
			"copy %s from who set the store up, or set it up with `corpus store init`", publish.RootName))
	}
	return publisher, trust.Pin(publisher.Seen, root)
}

// code gives errors of publishing their exit codes.
func code(err error) error {
	var immutable *publish.Immutable
	if errors.As(err, &immutable) {
		return exit.WithCode(exit.Usage, err)
	}
	return err
}
