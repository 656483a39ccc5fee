package main

import (
	"context"
	"errors"
	"slices"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

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
		return diag.StoreLost.Hint(errors.Join(sum.damaged...),
			"publish the same file again, `corpus publish PROJECT VERSION FILE`: it replaces what is lost or damaged; first "+
				"find out who or what changed it")
	}
	return p.answer(sum, "verified %s, %s", diag.Count(sum.Artifacts, "artifact"), diag.Size(sum.Bytes))
}

// verified counts the objects that verify has read.
type verified struct {
	Artifacts  int   `json:"artifacts"`
	Statements int   `json:"statements"`
	Bytes      int64 `json:"bytes"`

	damaged []error // errors of objects that are lost or damaged
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
