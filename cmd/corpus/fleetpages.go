package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/agent/fleet"
	"github.com/corpus-agent/corpus-agent/agent/fleet/pages"
	"github.com/corpus-agent/corpus-agent/artifact/publish/awskms"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/stores"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// pagesWritten is the output of `corpus fleet --html`.
type pagesWritten struct {
	First string `json:"first"` // the page to begin with
	Hosts int    `json:"hosts"`
}

// writePages writes the fleet as pages into a directory, or below a prefix of a store.
func (p *program) writePages(ctx context.Context, s store.Store, client *trust.Client, v *fleet.View,
	list []trust.Listing,
	o fleetOptions) error {
	out, first, err := p.pagesInto(o.html)
	if err != nil {
		return err
	}
	compare := comparing{client: client, listings: list}
	site := pages.Site{View: v, Store: s, Listings: list, Detailed: o.reports, Compare: compare.releases,
		Histories: map[string][]pages.History{}}
	if site.Rollouts, err = shownRollouts(ctx, client, s, list, v, o); err != nil {
		return err
	}
	for _, l := range list {
		if site.Histories[l.Project], err = histories(ctx, s, client, l); err != nil {
			return err
		}
	}
	hosts, err := site.Write(ctx, out)
	if err != nil {
		return err
	}
	return p.answer(pagesWritten{first, hosts}, "wrote pages of %s: %s", hostCountOf(hosts), first)
}

// pagesInto returns the output for pages, and the path or URL of the first page.
func (p *program) pagesInto(into string) (out pages.Output, first string, err error) {
	if strings.Contains(into, "://") {
		s, err := stores.OpenAs(into, stores.Options{Retry: store.RetryPolicy{Total: p.retry, Waiting: p.waiting(),
			Slow: p.SlowStore(into)}}, awskms.Account)
		if err != nil {
			return nil, "", exit.WithCode(exit.Usage, err)
		}
		address, err := url.Parse(into)
		if err != nil {
			return nil, "", exit.WithCode(exit.Usage, err)
		}
		return inStore{s}, address.JoinPath("index.html").String(), nil
	}
	dir, err := filepath.Abs(into)
	if err != nil {
		return nil, "", err
	}
	if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // pages are for all who may see the directory
		return nil, "", exit.WithCode(exit.Usage, diag.Output.Hint(fmt.Errorf("making the directory of the pages: %w", err),
			"give --html a directory that you may write, or the URL of a store"))
	}
	root, err := walk.OpenTree(dir)
	if err != nil {
		return nil, "", err
	}
	p.cleanups = append(p.cleanups, func() { _ = root.Close() })
	return inDirectory{root}, "file://" + filepath.Join(dir, "index.html"), nil
}

// inDirectory writes pages into a directory. The files are not synced, since every call writes all of them.
type inDirectory struct{ root *os.Root }

func (d inDirectory) Page(_ context.Context, name string, content []byte) error {
	err := d.root.WriteFile(name+".new", content, 0o644)
	if errors.Is(err, os.ErrNotExist) {
		if err = d.root.MkdirAll(path.Dir(name), 0o755); err == nil {
			err = d.root.WriteFile(name+".new", content, 0o644)
		}
	}
	if err == nil {
		err = d.root.Rename(name+".new", name)
	}
	if err != nil {
		return fmt.Errorf("writing the page %s: %w", name, err)
	}
	return nil
}

// inStore writes pages into a store.
type inStore struct{ store store.Store }

func (s inStore) Page(ctx context.Context, name string, content []byte) error {
	if _, err := s.store.Put(ctx, name, bytes.NewReader(content), int64(len(content)), store.Condition{}); err != nil {
		return fmt.Errorf("writing the page %s: %w", name, err)
	}
	return nil
}
