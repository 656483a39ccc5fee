package main

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/doctor"
	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/collect"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

const (
	// gcGrace is the default of --grace: how long a publish may take from its first upload to its last signature.
	gcGrace = 24 * time.Hour
	// gcDrafts is the default of --drafts: how long a draft may wait for its signatures.
	gcDrafts = 30 * 24 * time.Hour
)

// collected is the result of gc.
type collected struct {
	collect.Collected
	Pruned  []collect.Pruned `json:"pruned,omitempty"`  // versions that were removed from the metadata first
	Reports *collect.Tally   `json:"reports,omitempty"` // of hosts; nil without --reports
}

func (p *program) gcCommand() *cobra.Command {
	grace, dry, keep, reports := collect.Grace{Packs: gcGrace, Drafts: gcDrafts}, false, 0, days(0)
	c := &cobra.Command{
		Use:   "gc",
		Short: "Remove objects that no version of a project needs",
		Long: `gc removes artifacts, the files beside them, and packs of chunks that no signed metadata names: they remain
from a publish that was interrupted. It removes pages of the lists of versions that are named neither by the
present head nor by one that was replaced within the grace period. It aborts uploads that were never
completed. It may run while others publish: it keeps objects that are younger than the grace period, since
a publisher may be about to sign them, and objects that an unsigned draft names. It needs permission to list
and delete below deploy/ and metadata/pages/, see docs/buckets.md.

Without --keep it signs nothing. With --keep 50 it first removes all but the newest 50 versions of each
project from the signed metadata, and needs the keys of the projects, of snapshot and of timestamp for that.
Versions that channels point at stay, and withdrawn versions stay withdrawn. The objects of removed versions
are removed too if they are older than the grace period. Hosts that run such a version keep running it, and
cannot fetch it again.

With --reports 90d it also removes the reports of hosts that the store got more than 90 days ago, but for the
newest report of each host that has a record (corpus fleet). It then needs permission to list reports/ and
fleet/, and to delete below reports/.`,
		Example: `  corpus gc --store s3://bucket/prefix --keys keys --dry-run
  corpus gc --keep 50 --store s3://bucket/prefix --keys keys
  corpus gc --reports 90d --store s3://bucket/prefix --keys keys`,
		Args: cli.Args(cobra.NoArgs),
		RunE: func(c *cobra.Command, _ []string) error {
			publisher, err := p.pinned(c.Context())
			if err != nil {
				return err
			}
			if err := p.mayRemove(c.Context(), publisher.Store, dry); err != nil {
				return denied(err)
			}
			if err := collect.CheckClock(c.Context(), publisher); err != nil {
				return code(err)
			}
			pruned, err := p.prune(c, publisher, keep, dry)
			if err != nil {
				return code(err)
			}
			all, err := collect.Garbage(c.Context(), publisher, grace, dry)
			if err != nil {
				return denied(err)
			}
			did := "removed"
			if dry {
				did = "would remove"
			}
			gone, err := p.oldReports(c, publisher, reports, dry, &all)
			if err != nil {
				return err
			}
			o, pages := all.Objects, all.Pages
			o = collect.Tally{Removed: o.Removed + pages.Removed, Young: o.Young + pages.Young, Pending: o.Pending,
				Kept: o.Kept + pages.Kept}
			return p.answer(collected{all, pruned, gone},
				"%s %s and %s, %s%s, and %s; %d are in use, %d wait for a draft to be "+
					"signed, %d are newer than the grace",
				did, diag.Count(all.Packs, "pack"), diag.Count(o.Removed, "other object"), namedReports(gone), diag.Size(all.Bytes),
				diag.Count(all.Uploads.Removed, "unfinished upload"), all.Kept+o.Kept, all.Pending+o.Pending,
				all.Young+o.Young+all.Uploads.Young)
		},
	}
	c.Flags().DurationVar(&grace.Packs, "grace", gcGrace, "age below which objects are kept")
	c.Flags().DurationVar(&grace.Drafts, "drafts", gcDrafts, "age up to which the objects that a draft names are kept")
	c.Flags().IntVar(&keep, "keep", 0, "newest versions of each project that stay in the signed metadata; 0 for all")
	c.Flags().Var(&reports, "reports", "age from which reports of hosts are removed, such as 90d; none by default")
	c.Flags().BoolVar(&dry, "dry-run", false, "show what would be removed without removing it")
	return c
}

// mayRemove returns an error for a directory, or a web server, from which this user cannot remove objects, although
// none may have to be removed now. Servers of buckets answer that with the first removal: a role of theirs may be
// allowed to remove and not to write.
func (p *program) mayRemove(ctx context.Context, s store.Store, dry bool) error {
	if dry || strings.HasPrefix(p.store, "s3://") || strings.HasPrefix(p.store, "minio://") {
		return nil
	}
	err := doctor.MayWrite(ctx, doctor.Store{Store: s, URL: p.store}, "deploy/")
	if err == nil {
		return nil
	}
	return diag.Credentials.Hint(fmt.Errorf("gc cannot remove objects: %w", err),
		"run it as the owner of the store, or with --dry-run; docs/buckets.md names the rights of gc")
}

// prune removes old versions from the signed metadata and prints them.
func (p *program) prune(c *cobra.Command, publisher *publish.Publisher, keep int, dry bool) ([]collect.Pruned, error) {
	if keep < 0 || keep == 0 && c.Flags().Changed("keep") {
		return nil, exit.WithCode(exit.Usage, diag.Usage.Hint(errors.New("--keep is a number of versions, from 1"),
			"omit it to keep all versions"))
	}
	if keep == 0 {
		return nil, nil
	}
	pruned, err := collect.Prune(c.Context(), publisher, keep, dry)
	did := "removed from the metadata"
	if dry {
		did = "would remove from the metadata"
	}
	for _, project := range pruned {
		switch {
		case p.json:
		case project.Reason != "":
			fmt.Fprintf(p.Err, "warning: all versions of %s stay: %s\n", project.Project, project.Reason)
		default:
			fmt.Fprintf(p.Out, "%s: %s %s\n", did, project.Project, strings.Join(project.Versions, ", "))
		}
	}
	return pruned, err
}

// days is a duration that may also be given in days, such as 90d.
type days time.Duration

func (d *days) String() string {
	if *d == 0 {
		return ""
	}
	return time.Duration(*d).String()
}

// Type returns the name of the value's type for help texts.
func (d *days) Type() string { return "duration" }

// Set parses a number of days or a duration such as 720h.
func (d *days) Set(text string) error {
	number, inDays := strings.CutSuffix(text, "d")
	if n, err := strconv.ParseUint(number, 10, 16); inDays && err == nil && n > 0 {
		*d = days(time.Duration(n) * 24 * time.Hour)
		return nil
	}
	read, err := time.ParseDuration(text)
	if err != nil || read <= 0 {
		return fmt.Errorf("%q is not an age; give days, such as 90d, or a duration such as 720h", text)
	}
	*d = days(read)
	return nil
}

// oldReports removes old reports of hosts, and adds their size to all.Bytes. It returns nil without --reports.
func (p *program) oldReports(c *cobra.Command, publisher *publish.Publisher, age days, dry bool,
	all *collect.Collected) (*collect.Tally, error) {
	if age == 0 {
		return nil, nil
	}
	tally, bytes, err := collect.Reports(c.Context(), publisher, time.Duration(age), dry)
	all.Bytes += bytes
	if errors.Is(err, store.ErrForbidden) {
		err = diag.Credentials.Hint(err, "--reports takes the right to list the store, and to delete below reports/ "+
			"(docs/buckets.md)")
	}
	return &tally, err
}

func namedReports(gone *collect.Tally) string {
	if gone == nil {
		return ""
	}
	return diag.Count(gone.Removed, "report") + ", "
}
