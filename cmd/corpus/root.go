package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/awskms"
	"github.com/corpus-agent/corpus-agent/artifact/publish/keyring"
	"github.com/corpus-agent/corpus-agent/artifact/publish/proofs"
	"github.com/corpus-agent/corpus-agent/artifact/publish/recovery"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/publish/roots"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Main runs the program and returns its exit code.
func Main(ctx context.Context, args []string, streams cli.IO) int {
	streams, flush := streams.Shown()
	defer flush()
	p := &program{IO: streams}
	defer p.close()
	_ = durable.SweepScratch() // files that cannot be removed only take disk space
	return cli.Run(ctx, p.root(), args, streams)
}

// program has the flags and the state that all commands share.
type program struct {
	cli.IO
	store     string
	keys      string
	trustRoot string
	json      bool
	verbose   bool
	retry     time.Duration // how long a request is repeated if the store does not answer

	atOnce   bool           // remove keys although hosts will refuse metadata that only they have signed
	by       string         // who moves a channel, as given
	draft    string         // file to write a draft to, instead of changing the store
	drafted  *publish.Draft // the draft that was written to it
	locks    *keyring.Locks
	exposed  map[string]bool // private key files about which a warning was printed
	cleanups []func()
	above    *report.Bars // the line of progress, above which other lines are printed; nil if there is none
}

// close removes the temporary files of the program.
func (p *program) close() {
	for _, done := range p.cleanups {
		done()
	}
}

func (p *program) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "corpus",
		Short: "Build, sign, publish and promote what hosts deploy",
		Long: `corpus makes signed artifacts from source trees and publishes them in a store, from which hosts fetch them.

A store is set up once. After that, publish uploads an artifact and points a channel at it, and promote points
another channel at the same bytes.`,
		Example: `  corpus keys new --keys keys
  corpus store init --store file:///srv/store --keys keys
  corpus build ./myapp -o myapp.tar.zst
  corpus publish myapp 1.0 myapp.tar.zst --store file:///srv/store --keys keys --channel testing
  corpus promote myapp testing production --store file:///srv/store --keys keys`,
		Version: cli.Version,
	}
	flags := root.PersistentFlags()
	flags.StringVar(&p.store, "store", p.Getenv("CORPUS_STORE"), "URL of the store (CORPUS_STORE)")
	flags.StringVar(&p.keys, "keys", p.Getenv("CORPUS_KEYS"), "directory of keys (CORPUS_KEYS)")
	flags.StringVar(&p.trustRoot, "trust-root", p.Getenv("CORPUS_TRUST_ROOT"),
		"root.json to trust, or sha256:HEX of it; the one beside the keys by default (CORPUS_TRUST_ROOT)")
	flags.DurationVar(&p.retry, "retry", time.Minute, "how long to wait and retry if the store does not answer a request")
	flags.BoolVar(&p.json, "json", false, "print JSON")
	flags.BoolVarP(&p.verbose, "verbose", "v", false, "print more details")
	root.AddCommand(p.keysCommand(), p.storeCommand(), p.initCommand(), p.checkCommand(), p.buildCommand(),
		p.publishCommand(), p.promoteCommand(),
		p.pointCommand(), p.rolloutCommand(), p.attestCommand(), p.hostCommand(), p.fleetCommand(),
		p.yankCommand(), p.listCommand(), p.historyCommand(), p.diffCommand(), p.verifyCommand(), p.doctorCommand(),
		p.gcCommand(), p.projectCommand(), p.rootCommand(),
		p.refreshCommand(),
		p.exportCommand(), p.signCommand(), p.importCommand(), p.bootstrapCommand(), p.pushCommand(),
		p.orchestrateCommand(), p.nodeCommand(), p.guestCommand(), p.accessCommand(), p.devCommand(),
		cli.VersionCommand(p.IO))
	root.AddCommand(p.rfcCommands()...)
	return root
}

// answer prints a result as JSON, or as text.
func (p *program) answer(result any, text string, args ...any) error {
	if p.json {
		return p.JSON(result)
	}
	_, err := fmt.Fprintf(p.Out, text+"\n", args...)
	return err
}

// explain prints a line if -v was given.
func (p *program) explain(text string, args ...any) {
	if p.verbose {
		fmt.Fprintf(p.Err, text+"\n", args...)
	}
}

func (p *program) openStore() (store.Store, error) {
	if p.store == "" {
		return nil, noStore()
	}
	s, err := stores.OpenAs(p.store, stores.Options{Retry: store.RetryPolicy{Total: p.retry, Waiting: p.waiting(),
		Slow: p.SlowStore(p.store)}},
		awskms.Account)
	return s, exit.WithCode(exit.Usage, err)
}

func noStore() error {
	return exit.WithCode(exit.Usage, diag.StoreURL.Hint(errors.New("no store was given"),
		"give --store URL, such as file:///srv/store or s3://bucket/prefix, or set CORPUS_STORE"))
}

// waiting returns a function that prints once that a command is waiting for the store, after two seconds.
func (p *program) waiting() func(error, time.Duration) {
	var mu sync.Mutex
	var since time.Time
	printed := false
	return func(err error, _ time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		if since.IsZero() {
			since = time.Now()
		}
		if !printed && time.Since(since) > 2*time.Second {
			printed = true
			p.above.Above(p.Err, fmt.Sprintf("waiting for the store: %v\n", err))
		}
	}
}

// nextName is the directory beside the keys that has the new keys of a rotation until they are in force.
const nextName = "next"

// seenName is the directory beside the keys in which publishers store the metadata that they have read.
const seenName = "seen"

// publisher opens the store with the available keys. The metadata that the publisher has read is kept beside the keys;
// if the keys come from the environment, it is not kept.
func (p *program) publisher(ctx context.Context) (*publish.Publisher, error) {
	s, err := p.openStore()
	if err != nil {
		return nil, err
	}
	ring, err := p.ring(ctx)
	if err != nil {
		return nil, err
	}
	who, err := p.mover()
	if err != nil {
		return nil, err
	}
	publisher := &publish.Publisher{Store: s, Keys: ring, Seen: filepath.Join(ring.Dir, seenName), AtOnce: p.atOnce,
		Who: who}
	if ring.Dir != "" { // the keys of a rotation that has not ended
		waiting := ring
		waiting.Dir, waiting.Env = filepath.Join(ring.Dir, nextName), nil
		publisher.Waiting = []keyring.Ring{waiting}
	}
	if ring.Dir == "" {
		var done func()
		if publisher.Seen, done, err = durable.Scratch(); err != nil {
			return nil, err
		}
		p.cleanups = append(p.cleanups, done)
	}
	if err := trust.CheckKept(publisher.Seen); err != nil {
		return nil, err
	}
	if p.draft != "" {
		publisher.Hand = func(d *publish.Draft) error {
			p.drafted = d
			return d.Write(p.draft)
		}
	}
	return publisher, nil
}

// pinned is like publisher, for users who may not have set the store up: if the store is not known yet, it trusts
// the root.json that they were given.
func (p *program) pinned(ctx context.Context) (*publish.Publisher, error) {
	publisher, err := p.publisher(ctx)
	if err != nil {
		return nil, err
	}
	if pinned, err := trust.Pinned(publisher.Seen); pinned || err != nil {
		return publisher, err
	}
	root, err := p.rootOfTrust(ctx, publisher.Store)
	if err != nil {
		return nil, err
	}
	return publisher, trust.PinOf(ctx, publisher.Store, publisher.Seen, root)
}

// rootOfTrust returns the root that was given as a file or by its digest, or the one beside the keys.
func (p *program) rootOfTrust(ctx context.Context, s store.Store) ([]byte, error) {
	given := p.trustRoot
	if strings.HasPrefix(given, "sha256:") {
		digest, err := artifact.ParseDigest(given)
		if err != nil {
			return nil, exit.WithCode(exit.Usage, err)
		}
		return trust.FirstRoot(ctx, s, digest)
	}
	if given == "" && p.keys != "" {
		given = filepath.Join(p.keys, roots.RootName)
	}
	if given == "" {
		return nil, exit.WithCode(exit.Usage,
			diag.Root.Hint(errors.New("no root of trust was given, and no directory of keys that contains one"),
				"give --trust-root FILE or sha256:HEX of it, or --keys DIR with %s in it", roots.RootName))
	}
	root, err := trust.ReadRoot(given)
	if errors.Is(err, fs.ErrNotExist) {
		err = diag.Root.Hint(err, "give --trust-root FILE or sha256:HEX, or copy %s of the person who set the store up "+
			"into --keys DIR",
			roots.RootName)
	}
	return root, exit.WithCode(exit.Usage, err)
}

// code sets the exit codes of errors of publishing.
func code(err error) error {
	err = hintDisk(err)
	var immutable *releases.Immutable
	var short *publish.Short
	var mistake *publish.Mistake
	var unproven *proofs.Unproven
	var unaccepted *publish.Unaccepted
	var exhausted *publish.Exhausted
	var missing *recovery.Missing
	if errors.As(err, &missing) {
		return exit.WithCode(exit.Failed, err)
	}
	if errors.As(err, &unproven) || errors.As(err, &exhausted) {
		return exit.WithCode(exit.Refused, err)
	}
	if errors.As(err, &unaccepted) || errors.As(err, &immutable) || errors.As(err, &short) || errors.As(err, &mistake) {
		return exit.WithCode(exit.Usage, err)
	}
	return err
}

// hintDisk adds a hint to an error about a full or read-only disk of the store or of the keys.
func hintDisk(err error) error {
	switch {
	case err == nil || diag.HintOf(err) != "":
		return err
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return diag.Disk.Hint(err, "make room on that disk (df -h, df -i), or raise the quota, and run the command again")
	case errors.Is(err, syscall.EROFS), errors.Is(err, store.ErrReadOnly):
		return diag.Disk.Hint(err, "mount that filesystem for writing, and run the command again")
	}
	return err
}
