package main

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/source"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/packaging"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) buildCommand() *cobra.Command {
	var how buildHow
	var fetch source.Options
	c := &cobra.Command{
		Use:   "build TREE -o FILE...",
		Short: "Build a tree into an artifact, packages and images",
		Long: `build packs a directory. The same tree gives the same bytes on every machine, so the digest identifies the
tree. Files that a host would refuse to unpack are errors, and so are files that look like secrets, unless
corpus.yaml allows them by name. Directories named .git are left out.

A corpus.yaml in the tree may name a builder, and FILE may end in .tar.zst, .deb, .rpm or .oci.tar: all of them
are made by one build and contain the same files. Beside the first one, build writes FILE.spdx.json, which lists
its content, and FILE.provenance.json, which says what it was built from.

Files get the time at which a host unpacks them, unless SOURCE_DATE_EPOCH is set.

TREE may be a URL too: file:///dir, or a git repository at a branch, tag or commit. The version is then
that tag, or the beginning of the commit, and the provenance names repository and commit.`,
		Example: `  corpus build ./myapp -o myapp-1.0.tar.zst
  corpus build ./myapp -o myapp-1.0.tar.zst -o myapp-1.0.deb --version 1.0
  corpus build ./myapp --check
  corpus build 'git::https://example.com/myapp.git?ref=v1.0' -o myapp-1.0.tar.zst
  corpus build 'git::https://example.com/myapp.git?ref=5f0c1e2a9b7d4c3e8f60a1b2c3d4e5f60718293a' -o myapp.deb`,
		Args: cli.Args(cobra.ExactArgs(1)),
		RunE: func(c *cobra.Command, args []string) error {
			tree, done, err := fetched(args[0], func(dst string) (err error) {
				how.commit, err = source.Tree(c.Context(), args[0], dst, fetch)
				return err
			})
			if err != nil {
				return err
			}
			defer done()
			return p.build(c.Context(), tree, how)
		},
	}
	cli.RepeatedVar(c.Flags(), &how.outputs, "output", "o", "file to write; may be given several times")
	c.Flags().StringVar(&how.version, "version", "", "version, in place of the one from corpus.yaml or git")
	c.Flags().StringVar(&how.onTop, "image-base", "",
		"directory, tar archive or OCI image layout for the base of the image, in place of package.base in corpus.yaml")
	limitFlag(c, &fetch)
	c.Flags().BoolVar(&how.check, "check", false, "build twice and name the files that differ")
	return c
}

// limitFlag adds the flag for the size of a source that is a URL.
func limitFlag(c *cobra.Command, fetch *source.Options) {
	c.Flags().Int64Var(&fetch.Limit, "max-source", 5<<30,
		"largest number of bytes to fetch from a URL; for a tree, of all its files")
}

// fetched returns a local path for a path or URL of the command line. The content of a URL is fetched into a
// temporary directory, under its own name, which exists until done is called.
func fetched(named string, fetch func(dst string) error) (file string, done func(), err error) {
	if !strings.Contains(named, "://") {
		return named, func() {}, nil
	}
	dir, done, err := durable.Scratch()
	if err != nil {
		return "", nil, err
	}
	name := "source"
	if u, err := url.Parse(strings.TrimPrefix(named, "git::")); err == nil && path.Base(u.Path) != "/" &&
		path.Base(u.Path) != "." {
		name = strings.TrimSuffix(path.Base(u.Path), ".git")
	}
	file = filepath.Join(dir, name)
	if err := fetch(file); err != nil {
		done()
		return "", nil, exit.WithCode(exit.Usage, err)
	}
	return file, done, nil
}

func (p *program) publishCommand() *cobra.Command {
	request, unscanned, urgent := releases.Request{}, false, false
	var fetch source.Options
	c := &cobra.Command{
		Use:   "publish PROJECT VERSION FILE",
		Short: "Upload an artifact, sign it as a version, and point a channel at it",
		Long: `publish needs the project's key and those of snapshot and timestamp. If the targets key is available too, a
key is made for a new project.

A version is immutable: publishing it again with other bytes is refused. A publisher that has not seen the
store before also refuses a version if the store has an artifact of it with other bytes that is not signed: hosts
may know it from before the store was restored from an older copy. --force publishes it.

A file in the artifact that looks like a secret is an error, as it is for build, unless the artifact's own
corpus.yaml allows it by name; --no-secret-scan turns the scan off.

Probable typing errors are refused without --new, before anything is written: a new project or channel whose name
differs in only one or two letters from that of another one, or of testing, staging or production, and an artifact
whose corpus.yaml names another project or version. A version that was set with corpus build --version counts as
the artifact's own if its provenance is beside FILE.

The files that corpus build wrote beside FILE, with .spdx.json and .provenance.json in place of its ending, are
signed with it.

If the channel has a plan (corpus project rollout), publish starts a rollout; see corpus promote.

FILE may be a URL too, such as https://host/app.tar.zst?checksum=sha256:HEX.`,
		Example: `  corpus publish myapp 1.0 myapp-1.0.tar.zst --store s3://bucket/prefix --keys keys --channel testing`,
		Args:    cli.Args(cobra.ExactArgs(3)),
		RunE: func(c *cobra.Command, args []string) error {
			file, done, err := fetched(args[2], func(dst string) error {
				_, err := source.File(c.Context(), args[2], dst, fetch)
				return err
			})
			if err != nil {
				return err
			}
			defer done()
			request.Project, request.Version, request.File = args[0], args[1], file
			if !unscanned {
				request.Check = packaging.CheckSecrets
			}
			return p.publish(c.Context(), request, urgent)
		},
	}
	c.Flags().StringVar(&request.Channel, "channel", "", "channel to point at the version; none by default")
	c.Flags().BoolVar(&request.Plain, "plain", false, "omit the lists with which hosts fetch it in blocks and chunks")
	c.Flags().BoolVar(&request.New, "new", false,
		"publish although a new project or channel has nearly the same name as another one, or the artifact's "+
			"corpus.yaml names another project or version")
	c.Flags().BoolVar(&request.Force, "force", false,
		"publish although the store has an unsigned artifact of this version with other bytes")
	limitFlag(c, &fetch)
	c.Flags().BoolVar(&unscanned, "no-secret-scan", false,
		"publish without scanning the files of the artifact for secrets")
	urgentFlag(c, &urgent)
	p.draftFlag(c)
	return c
}

func (p *program) publish(ctx context.Context, request releases.Request, urgent bool) error {
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	starter := p.starts(publisher, urgent)
	if _, err := os.Stat(request.File); err != nil {
		return exit.WithCode(exit.Usage, diag.WithHint(fmt.Errorf("reading the artifact: %w", err),
			"make it: corpus build TREE -o FILE"))
	}
	release, err := releases.Publish(ctx, publisher, request)
	if err != nil {
		return code(err)
	}
	if p.drafted != nil {
		return p.answerDraft()
	}
	text := fmt.Sprintf("published %s (%s, %s)", release, release.Digest, diag.Size(release.Length))
	ref := artifact.Ref{Project: release.Project, Channel: request.Channel}
	if request.Channel != "" {
		text += fmt.Sprintf("\n%s is %s", ref, release.Version)
	}
	return starter.answer(ref, release, text)
}

func (p *program) promoteCommand() *cobra.Command {
	isNew, urgent := false, false
	c := &cobra.Command{
		Use:   "promote PROJECT FROM TO",
		Short: "Point a channel at the release of another channel",
		Long: `promote signs a new pointer. The bytes that were tested are the bytes that are promoted.

If the channel requires proof that a release was healthy on another channel (corpus project require), the proof
that corpus attest stored is included; without one the exit code is 4. From a channel to itself, promote includes
a newer proof of the channel's release.

TO may be a new channel. It is refused without --new if its name differs in only one or two letters from that of
another channel of the project, or from testing, staging or production. corpus point --remove removes a channel.

If TO has a plan (corpus project rollout), promote starts a rollout: it divides the hosts that follow the channel
into waves, which deploy the release one after the other. That needs permission to list the store and to read below
reports/ and hosts/. If the agents of some hosts are older than the plan requires, nothing is promoted, and the exit
code is 4. With --urgent a rollout, including one that is under way, does not wait between waves, but still stops if
the release fails.`,
		Example: `  corpus promote myapp testing production --store s3://bucket/prefix --keys keys
  corpus promote myapp testing production --urgent --store s3://bucket/prefix --keys keys`,
		Args: cli.Args(cobra.ExactArgs(3)),
		RunE: func(c *cobra.Command, args []string) error {
			publisher, err := p.pinned(c.Context())
			if err != nil {
				return err
			}
			publisher.New = isNew
			starter := p.starts(publisher, urgent)
			release, err := releases.Promote(c.Context(), publisher, args[0], args[1], args[2])
			if err != nil {
				return code(err)
			}
			if p.drafted != nil {
				return p.answerDraft()
			}
			return starter.answer(artifact.Ref{Project: args[0], Channel: args[2]}, release,
				fmt.Sprintf("%s/%s is %s, as %s/%s", args[0], args[2], release.Version, args[0], args[1]))
		},
	}
	newChannelFlag(c, &isNew)
	urgentFlag(c, &urgent)
	p.draftFlag(c)
	return c
}

func (p *program) yankCommand() *cobra.Command {
	reason, undo := "", false
	c := &cobra.Command{
		Use:   "yank PROJECT VERSION",
		Short: "Withdraw a version",
		Long: `yank signs that a version is withdrawn. A host that runs it reports that at its next run, and keeps running it
until its channel names another version; other hosts do not deploy it. If a channel points at it, the channel's
hosts keep what they run.

yank needs the project's key and those of snapshot and timestamp. The artifact stays in the store.`,
		Example: `  corpus yank myapp 1.2 --reason "loses sessions" --store s3://bucket/prefix --keys keys
  corpus yank myapp 1.2 --undo --store s3://bucket/prefix --keys keys`,
		Args: cli.Args(cobra.ExactArgs(2)),
		RunE: func(c *cobra.Command, args []string) error {
			return p.yank(c.Context(), args[0], args[1], reason, undo)
		},
	}
	c.Flags().StringVar(&reason, "reason", "", "reason that hosts running it report")
	c.Flags().BoolVar(&undo, "undo", false, "undo the withdrawal")
	p.draftFlag(c)
	return c
}

func (p *program) yank(ctx context.Context, project, version, reason string, undo bool) error {
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	if undo {
		release, err := releases.Unyank(ctx, publisher, project, version)
		if err != nil {
			return code(err)
		}
		if p.drafted != nil {
			return p.answerDraft()
		}
		return p.answer(release, "%s is no longer withdrawn", release)
	}
	result, err := releases.Yank(ctx, publisher, project, version, reason)
	if err != nil {
		return code(err)
	}
	if p.drafted != nil {
		return p.answerDraft()
	}
	text := fmt.Sprintf("withdrew %s", result.Release)
	for _, channel := range result.Channels {
		text += fmt.Sprintf("\n%s/%s still points at it: its hosts keep what they run until it points at another version", project,
			channel)
	}
	return p.answer(result, "%s", text)
}
