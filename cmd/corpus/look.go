package main

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// reader returns a client that follows a store from a root of trust, as a host does.
func (p *program) reader(ctx context.Context) (client *trust.Client, done func(), err error) {
	client, _, done, err = p.readerAndStore(ctx)
	return client, done, err
}

// readerAndStore is reader, with the store that it reads.
func (p *program) readerAndStore(ctx context.Context) (client *trust.Client, s store.Store, done func(), err error) {
	if s, err = p.openStore(); err != nil {
		return nil, nil, nil, err
	}
	root, err := p.rootOfTrust(ctx, s)
	if err != nil {
		return nil, nil, nil, err
	}
	if err := p.checkMemory(); err != nil {
		return nil, nil, nil, err
	}
	// The client sees the store as a new host would. The store is refused if it is older than what this user has
	// seen of it. What was seen never replaces files that the store has lost.
	memory := p.memoryOf(root)
	if memory != "" {
		_, _, forget, err := fresh(ctx, s, root, memory)
		if err != nil {
			return nil, nil, nil, err
		}
		forget()
	}
	client, dir, done, err := fresh(ctx, s, root, "")
	if err != nil {
		return nil, nil, nil, trust.HintRebuild(err)
	}
	p.remember(memory, dir, root)
	return client, s, done, nil
}

// fresh returns a client of a store that knows only the root and, if memory is not empty, the metadata in that
// directory. It stores what it sees in dir until done is called.
func fresh(ctx context.Context, s store.Store, root []byte, memory string) (client *trust.Client, dir string,
	done func(), err error) {
	dir, done, err = durable.Scratch()
	if err != nil {
		return nil, "", nil, err
	}
	err = trust.Pin(dir, root)
	if err == nil && memory != "" {
		err = trust.Remind(dir, memory, root)
	}
	if err == nil {
		client, err = trust.Open(s, dir, nil)
	}
	if err == nil {
		err = client.Refresh(ctx)
	}
	if err != nil {
		done()
		return nil, "", nil, err
	}
	return client, dir, done, nil
}

// checkMemory returns an error if the metadata that publishers with these keys have seen is damaged: without it, a
// store that went back in time would not be noticed.
func (p *program) checkMemory() error {
	if p.keys == "" {
		return nil
	}
	return trust.CheckKept(filepath.Join(p.keys, seenName))
}

// memoryOf returns the directory with what was seen of the store with this root: by publishers with these keys, or
// else by earlier commands of this user, in the cache. It returns "" if there is none.
func (p *program) memoryOf(root []byte) string {
	if p.keys != "" {
		beside := filepath.Join(p.keys, seenName)
		if pinned, err := trust.Pinned(beside); pinned || err != nil {
			return beside
		}
	}
	cache := p.cacheDir()
	if cache == "" {
		return ""
	}
	return filepath.Join(cache, seenName, fmt.Sprintf("%x", sha256.Sum256(root)))
}

// cacheDir is the directory of what this person's earlier looks have seen; "" where there is none.
func (p *program) cacheDir() string {
	cache := p.Getenv("XDG_CACHE_HOME")
	if home := p.Getenv("HOME"); cache == "" && home != "" {
		cache = filepath.Join(home, ".cache")
	}
	if !filepath.IsAbs(cache) {
		return ""
	}
	return filepath.Join(cache, "corpus")
}

// remember stores in the cache what a command has seen. The directory of publishers is not changed.
func (p *program) remember(memory, dir string, root []byte) {
	if memory == "" || p.keys != "" && memory == filepath.Join(p.keys, seenName) {
		return
	}
	err := trust.Pin(memory, root)
	if err == nil {
		err = trust.Remind(memory, dir, root)
	}
	if err != nil {
		p.explain("what was seen of the store was not kept in %s: %v", memory, err)
	}
}

func (p *program) listCommand() *cobra.Command {
	why := false
	c := &cobra.Command{
		Use:   "ls",
		Short: "List projects, channels and versions of a store",
		Long: `ls lists what is signed. With --why it shows below each channel which digest it names, which key signed the
pointer, what the channel requires, and the proof that it carries: its digest, the channel where it was
healthy, the hosts that reported it healthy and when, and the key that attested it; or why hosts refuse it.
--json has all of it under grounds.

A project that cannot be read is listed as such with the others, and the exit code is that of its error. A store
that went back in time, such as one that was restored from an older copy, is refused. This is detected with what
publishers with --keys have seen of it, or else earlier commands of this user (below $XDG_CACHE_HOME/corpus or
~/.cache/corpus).

The first line is the date on which the first signature that hosts need expires. In the last third of a
signature's lifetime, a warning names it and the command that renews it.`,
		Example: `  corpus ls --store s3://bucket/prefix --trust-root keys/root.json
  corpus ls --why --store s3://bucket/prefix --trust-root keys/root.json
  corpus ls --why --json --store s3://bucket/prefix --trust-root keys/root.json`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			client, done, err := p.reader(c.Context())
			if err != nil {
				return err
			}
			defer done()
			list, err := client.List(c.Context())
			if err != nil {
				return err
			}
			expiries := client.Expiries()
			for _, e := range trust.Expiring(expiries, time.Now()) {
				fmt.Fprintf(p.Err, "warning: %s\n", e)
			}
			if p.json {
				return errors.Join(p.JSON(list), cli.AlreadyReported(unread(list)))
			}
			fmt.Fprintf(p.Out, "signed until %s (%s)\n", expiries[0].Expires.Format("2006-01-02 15:04 MST"), expiries[0].Role)
			return errors.Join(p.printList(list, why), unread(list))
		},
	}
	c.Flags().BoolVar(&why, "why", false, "show why channels may point where they do")
	return c
}

func (p *program) printList(list []trust.Listing, why bool) error {
	w := tabwriter.NewWriter(p.Out, 0, 8, 2, ' ', 0)
	for _, l := range list {
		if l.Err != nil {
			fmt.Fprintf(w, "%s\tcannot be read\n", l.Project)
			continue
		}
		if l.Serial == 0 {
			fmt.Fprintf(w, "%s\tnothing is published\n", l.Project)
			continue
		}
		fmt.Fprintf(w, "%s\tsigned until %s\n", l.Project, l.Expires.Format("2006-01-02"))
		for _, name := range slices.Sorted(maps.Keys(l.Channels)) {
			version := l.Channels[name].Version
			// No tab: a column of its own here would widen those of the versions below.
			fmt.Fprintf(w, "  %s/%s\t%s%s\n", l.Project, name, version, withdrawn(l, version, "  "))
			if why {
				printGrounds(w, l, name)
			}
		}
		for _, r := range l.Releases {
			fmt.Fprintf(w, "  %s\t%s\t%s%s\n", r.Version, diag.Size(r.Length), r.Digest, withdrawn(l, r.Version, "\t"))
		}
	}
	return w.Flush()
}

// unread returns the errors of the projects that could not be read.
func unread(list []trust.Listing) error {
	var errs []error
	for _, l := range list {
		if l.Err != nil {
			errs = append(errs, fmt.Errorf("reading %s: %w", l.Project, l.Err))
		}
	}
	return errors.Join(errs...)
}

// withdrawn returns the text that follows a withdrawn version, with before in front of it; "" for other versions.
func withdrawn(l trust.Listing, version, before string) string {
	yank, ok := l.Yanked[version]
	if !ok {
		return ""
	}
	return before + strings.TrimSpace("withdrawn "+yank.At.Format("2006-01-02")+" "+trust.Printable(yank.Reason))
}

func (p *program) verifyCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "verify",
		Short: "Check everything in a store as a host would",
		Long: `verify verifies the signatures of a store and reads every artifact, and the files that are signed beside it,
to the end. It lists everything that is lost or damaged; publishing the same file again replaces it. A project
that cannot be read does not stop the others from being checked. A store that went back in time is refused,
see ` + "`corpus ls`" + `.`,
		Example: `  corpus verify --store s3://bucket/prefix --trust-root keys/root.json`,
		Args:    cli.Args(cobra.NoArgs),
		RunE:    func(c *cobra.Command, _ []string) error { return p.verify(c.Context()) },
	}
}

func (p *program) verify(ctx context.Context) error {
	client, done, err := p.reader(ctx)
	if err != nil {
		return err
	}
	defer done()
	list, err := client.List(ctx)
	if err != nil {
		return err
	}
	var sum verified
	for _, l := range list {
		for _, r := range l.Releases {
			if err := sum.add(ctx, client, r); err != nil {
				return err
			}
			p.explain("verified %s", r)
		}
	}
	if lost := unread(list); lost != nil {
		var err error
		if !p.json { // in JSON, only the error is printed
			err = p.answer(sum, "verified %s, %s, of the projects that can be read", diag.Count(sum.Artifacts, "artifact"),
				diag.Size(sum.Bytes))
		}
		return errors.Join(append([]error{err, lost}, sum.damaged...)...)
	}
	if len(sum.damaged) > 0 {
		return diag.WithHint(errors.Join(sum.damaged...),
			"publish the same file again, `corpus publish PROJECT VERSION FILE`: it replaces what is lost or damaged; first "+
				"find out who or what changed it")
	}
	return p.answer(sum, "verified %s, %s", diag.Count(sum.Artifacts, "artifact"), diag.Size(sum.Bytes))
}

// verified counts what verify has read.
type verified struct {
	Artifacts  int   `json:"artifacts"`
	Statements int   `json:"statements"`
	Bytes      int64 `json:"bytes"`

	damaged []error // objects that are lost, or differ from what was signed
}

// add reads a release and the files that are signed beside it. It returns only errors that would affect other
// releases, too.
func (v *verified) add(ctx context.Context, client *trust.Client, r artifact.Release) error {
	if err := v.take(client.Check(ctx, r, nil)); err != nil {
		return err
	}
	v.Artifacts, v.Bytes = v.Artifacts+1, v.Bytes+r.Length
	for _, kind := range trust.Kinds() {
		_, err := client.FetchSidecar(ctx, r, kind)
		if errors.Is(err, trust.ErrNoSidecar) {
			continue
		}
		if err := v.take(err); err != nil {
			return err
		}
		if slices.Contains(trust.Statements(), kind) {
			v.Statements++
		}
	}
	return nil
}

// take records the error of an object that is lost or damaged, and returns any other.
func (v *verified) take(err error) error {
	var refused *trust.Refused
	if errors.As(err, &refused) || errors.Is(err, store.ErrNotFound) {
		v.damaged = append(v.damaged, err)
		return nil
	}
	return err
}
