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

// reader follows a store from a root of trust, as a host does.
func (p *program) reader(ctx context.Context) (client *trust.Client, done func(), err error) {
	s, err := p.openStore()
	if err != nil {
		return nil, nil, err
	}
	root, err := p.rootOfTrust(ctx, s)
	if err != nil {
		return nil, nil, err
	}
	if err := p.checkMemory(); err != nil {
		return nil, nil, err
	}
	// A look sees the store as a host that was just started would, and refuses one that went back behind what this
	// person has seen of it. What was seen stands in for nothing that the store has lost.
	memory := p.memoryOf(root)
	if memory != "" {
		_, _, forget, err := fresh(ctx, s, root, memory)
		if err != nil {
			return nil, nil, err
		}
		forget()
	}
	client, dir, done, err := fresh(ctx, s, root, "")
	if err != nil {
		return nil, nil, trust.HintRebuild(err)
	}
	p.remember(memory, dir, root)
	return client, done, nil
}

// fresh is a client of a store that knows nothing but its root, and what a directory remembers, where one is given. It
// keeps what it sees in dir until done.
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

// checkMemory refuses what publishers with these keys have seen where it is damaged: a look without it would not notice
// a store that went back in time.
func (p *program) checkMemory() error {
	if p.keys == "" {
		return nil
	}
	return trust.CheckKept(filepath.Join(p.keys, seenName))
}

// memoryOf is the directory that has what was seen of the store with this root: by publishers with these keys, or else
// by this person's earlier looks, in their cache. "" says that there is none.
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

// remember keeps in the cache what a look has seen. What publishers have seen is theirs to write.
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
		Long: `ls lists what is signed. With --why it says below each channel which digest it names, whose key signed
that, what the channel requires, and the proof that it carries: for which digest, on which channel it was
before, which hosts reported it healthy and when, and whose key attested that; or why hosts refuse it.
--json has all of it under grounds.

A project that cannot be read is named as such, and hides no other one; the exit code is then that of its error. A store
that went back in time, as one that was restored from an older copy, is refused: what publishers with --keys have seen
of it, or else earlier looks of this user (below $XDG_CACHE_HOME/corpus, ~/.cache/corpus), tells.

The first line is the date on which the first signature that hosts need expires. From the last third of a signature's lifetime
on, a warning names it and what renews it.`,
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
	c.Flags().BoolVar(&why, "why", false, "say why channels may point where they do")
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

// unread are the errors of projects that could not be read.
func unread(list []trust.Listing) error {
	var errs []error
	for _, l := range list {
		if l.Err != nil {
			errs = append(errs, fmt.Errorf("reading %s: %w", l.Project, l.Err))
		}
	}
	return errors.Join(errs...)
}

// withdrawn is what follows a version that was taken back, and what is to stand before that.
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
		Long: `verify follows the signatures of a store and reads every artifact, and what is signed beside it, to
its end. It names all that is lost or damaged; publishing the same file again replaces that. A project that cannot be read keeps
no other one from being checked. A store that went back in time is refused, as ` + "`corpus ls`" + ` says.`,
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
		if !p.json { // there it is the error alone that is answered
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

// verified is what verify has read.
type verified struct {
	Artifacts  int   `json:"artifacts"`
	Statements int   `json:"statements"`
	Bytes      int64 `json:"bytes"`

	damaged []error // objects that are lost, or not what was signed
}

// add reads a release and what is signed beside it. Only what another release may do better with ends
// the whole.
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

// take keeps the failure of an object that is lost or damaged, and returns any other.
func (v *verified) take(err error) error {
	var refused *trust.Refused
	if errors.As(err, &refused) || errors.Is(err, store.ErrNotFound) {
		v.damaged = append(v.damaged, err)
		return nil
	}
	return err
}
