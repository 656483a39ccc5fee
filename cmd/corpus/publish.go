package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/source"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/cmd/cli"
	"github.com/corpus-agent/corpus-agent/packaging"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

func (p *program) publishCommand() *cobra.Command {
	request, unscanned, flags := releases.Request{}, false, startFlags{}
	var fetch source.Options
	c := &cobra.Command{
		Use:   "publish PROJECT VERSION FILE|TREE",
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

FILE may be a URL too, such as https://host/app.tar.zst?checksum=sha256:HEX.

In place of an artifact, publish takes a directory: it builds the tree as corpus build does, and uploads the artifact
while it is packed. If a check refuses it, or the command is interrupted, what was uploaded is removed.`,
		Example: `  corpus publish myapp 1.0 myapp-1.0.tar.zst --store s3://bucket/prefix --keys keys --channel testing
  corpus publish myapp 1.0 ./myapp --store s3://bucket/prefix --keys keys --channel testing`,
		Args: cli.Args(cobra.ExactArgs(3)),
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
			request.Check = checkOf(request.Project, unscanned)
			if is, err := walk.Directory(file); err != nil {
				return noArtifact(err)
			} else if is {
				return p.publishTree(c.Context(), file, request, unscanned, flags)
			}
			publisher, err := p.pinned(c.Context())
			if err != nil {
				return err
			}
			return p.publish(c.Context(), publisher, request, flags)
		},
	}
	requestFlags(c.Flags(), &request)
	limitFlag(c, &fetch)
	c.Flags().BoolVar(&unscanned, "no-secret-scan", false,
		"publish without scanning the files of the artifact for secrets")
	flags.add(c)
	p.byFlag(c)
	p.draftFlag(c)
	return c
}

// requestFlags adds the flags that set what is published.
func requestFlags(f *pflag.FlagSet, request *releases.Request) {
	f.StringVar(&request.Channel, "channel", "", "channel to point at the version; none by default")
	f.BoolVar(&request.Plain, "plain", false, "omit the lists with which hosts fetch it in blocks and chunks")
	f.BoolVar(&request.New, "new", false,
		"publish although a new project or channel has nearly the same name as another one, or the artifact's "+
			"corpus.yaml names another project or version")
	f.BoolVar(&request.Force, "force", false,
		"publish although the store has an unsigned artifact of this version with other bytes")
}

// checkOf returns the check of a tree before it is published: of its files for secrets unless unscanned, and of the
// data of the project cloud. It is nil if nothing is checked.
func checkOf(project string, unscanned bool) func(context.Context, string) error {
	secrets, ofCloud := !unscanned, project == cloud.Project
	if !secrets && !ofCloud {
		return nil
	}
	return func(ctx context.Context, tree string) error {
		var errs []error
		if secrets {
			errs = append(errs, packaging.CheckSecrets(ctx, tree))
		}
		if ofCloud {
			errs = append(errs, checkCloud(tree))
		}
		return errors.Join(errs...)
	}
}

// checkCloud returns the mistakes of the cloud in a tree of the project cloud.
func checkCloud(tree string) error {
	data, err := walk.ReadGiven(filepath.Join(tree, cloud.Name))
	if err != nil {
		return exit.WithCode(exit.Usage, diag.Cloud.Hint(
			fmt.Errorf("the release of the project %s has no %s that can be read: %w", cloud.Project, cloud.Name, err),
			"begin with the tree of the release before, or corpus init DIR --kind cloud"))
	}
	_, err = cloud.Parse(cloud.Name, data)
	return exit.WithCode(exit.Usage, err)
}

// noArtifact returns the error for an artifact that cannot be read.
func noArtifact(err error) error {
	return exit.WithCode(exit.Usage, diag.Usage.Hint(fmt.Errorf("reading the artifact: %w", err),
		"make it: corpus build TREE -o FILE"))
}

// publishTree builds a tree and publishes the artifact, which is uploaded while it is packed.
func (p *program) publishTree(ctx context.Context, tree string, request releases.Request, unscanned bool,
	flags startFlags) error {
	publisher, err := p.pinned(ctx)
	if err != nil {
		return err
	}
	dir, done, err := durable.Scratch()
	if err != nil {
		return err
	}
	defer done()
	request.File = filepath.Join(dir, request.Project+"-"+request.Version+".tar.zst")
	how := buildHow{outputs: []string{request.File}, version: request.Version, unscanned: unscanned,
		log: request.Project + "-" + request.Version + ".log"}
	how.said = func(name, version string) error { return request.CheckSaid(tree, name, version) }
	how.beside = func(file string) (io.Writer, error) {
		stage, err := releases.Stage(ctx, publisher, request, file)
		if err != nil || stage == nil {
			return io.Discard, err
		}
		request.Staged = stage
		return stage, nil
	}
	defer func() {
		if request.Staged != nil {
			_ = request.Staged.Close() // garbage collection removes what remains
		}
	}()
	made, err := p.makeOutputs(ctx, tree, how)
	if err != nil {
		return code(err)
	}
	p.explain("%s", made.text)
	request.Check = checkOf(request.Project, true) // the build scanned the same files
	return p.publish(ctx, publisher, request, flags)
}

func (p *program) publish(ctx context.Context, publisher *publish.Publisher, request releases.Request,
	flags startFlags) error {
	starter := p.starts(publisher, flags)
	info, err := os.Stat(request.File)
	if err != nil {
		return noArtifact(err)
	}
	var done func()
	request.Progress, done = p.progress("uploading")
	if show := request.Progress; request.Staged != nil && show != nil {
		request.Staged.Show(func(done int64) { show(filepath.Base(request.File), done, info.Size()) })
	}
	release, err := releases.Publish(ctx, publisher, request)
	done()
	if err != nil {
		return code(err)
	}
	text := fmt.Sprintf("published %s (%s, %s)", release, release.Digest, diag.Size(release.Length))
	ref := artifact.Ref{Project: release.Project, Channel: request.Channel}
	if request.Channel != "" {
		text += fmt.Sprintf("\n%s is %s", ref, release.Version)
	}
	return starter.answer(ctx, ref, release, text)
}
