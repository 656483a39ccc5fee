package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/corpus-agent/corpus-agent/agent/exit"
	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/durable"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/publish/releases"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/artifact/unpack"
	"github.com/corpus-agent/corpus-agent/artifact/walk"
	"github.com/corpus-agent/corpus-agent/packaging"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// publishedCloud is a release of the project cloud, fetched and verified.
type publishedCloud struct {
	data    *cloud.Cloud
	tree    string          // directory with its files
	channel string          // from which it was read
	version string          // empty if nothing was published yet
	digest  artifact.Digest // that the channel names
	next    int             // the version that a change gets
	newest  *cloud.Cloud    // the newest version; nil if that is the one which the channel names, or cannot be read
}

// editedCloud is the output of a command that changed a cloud.
type editedCloud struct {
	Project string         `json:"project"`
	Channel string         `json:"channel"`
	Version string         `json:"version"`
	Digest  string         `json:"digest,omitempty"`
	Changes []cloud.Change `json:"changes"`
}

// read fetches the cloud that the channel names. It returns an empty cloud if the store has no project cloud.
func (k *clouds) read(ctx context.Context) (*publishedCloud, func(), error) {
	client, closeClient, err := k.reader(ctx)
	if err != nil {
		return nil, nil, err
	}
	defer closeClient()
	dir, done, err := durable.Scratch()
	if err != nil {
		return nil, nil, err
	}
	now := &publishedCloud{data: cloud.New(), tree: filepath.Join(dir, "tree"), channel: k.channel, next: 1}
	if err := k.fetch(ctx, client, now); err != nil {
		done()
		return nil, nil, err
	}
	return now, done, nil
}

func (k *clouds) fetch(ctx context.Context, client *trust.Client, now *publishedCloud) error {
	if !slices.Contains(client.Projects(), cloud.Project) {
		return now.start(k.more)
	}
	list, err := client.ListOne(ctx, cloud.Project)
	if err != nil {
		return err
	}
	if len(list.Releases) == 0 {
		return now.start(k.more)
	}
	newest := ""
	for _, r := range list.Releases {
		if n, err := strconv.Atoi(r.Version); err == nil && n >= now.next {
			now.next, newest = n+1, r.Version
		}
	}
	release, err := releaseNamed(list, k.channel)
	if err != nil {
		return err
	}
	now.version, now.digest = release.Version, release.Digest
	if _, err := (comparing{client: client}).unpacked(ctx, release, filepath.Dir(now.tree), unpack.Limits{}); err != nil {
		return err
	}
	if err := now.parse(); err != nil || newest == "" || newest == now.version {
		return err
	}
	if release, err = releaseNamed(list, newest); err != nil {
		return err
	}
	now.newest, err = cloudOf(ctx, client, release)
	return err
}

// cloudOf returns the cloud of a release; nil if it has no valid one.
func cloudOf(ctx context.Context, client *trust.Client, release artifact.Release) (*cloud.Cloud, error) {
	dir, done, err := durable.Scratch()
	if err != nil {
		return nil, err
	}
	defer done()
	if _, err := (comparing{client: client}).unpacked(ctx, release, dir, unpack.Limits{}); err != nil {
		return nil, err
	}
	text, there, err := walk.Read(filepath.Join(dir, "tree", cloud.Name))
	if err != nil || !there {
		return nil, err
	}
	data, err := cloud.Parse(cloud.Name, text)
	var mistakes diag.List
	if errors.As(err, &mistakes) {
		return nil, nil //nolint:nilnil // numbers of a cloud with mistakes count for nothing
	}
	return data, err
}

// start writes the files of a new cloud, and more of them.
func (now *publishedCloud) start(more map[string][]byte) error {
	files, err := packaging.Starter("cloud", cloud.Project)
	if err != nil {
		return err
	}
	maps.Copy(files, more)
	for name, content := range files {
		file := filepath.Join(now.tree, name)
		if err := durable.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			return err
		}
		if err := durable.WriteFile(file, content, packaging.StarterMode(content)); err != nil {
			return err
		}
	}
	return nil
}

func (now *publishedCloud) parse() error {
	data, err := walk.ReadGiven(filepath.Join(now.tree, cloud.Name))
	if err != nil {
		return diag.Cloud.Hint(fmt.Errorf("reading %s of %s %s: %w", cloud.Name, cloud.Project, now.version, err),
			"a release of the project %s has this file; point the channel at one that has it", cloud.Project)
	}
	if now.data, err = cloud.Parse(cloud.Name, data); err != nil {
		return exit.WithCode(exit.Usage, diag.Cloud.Hint(
			fmt.Errorf("%s %s, which %s/%s names: %w", cloud.Project, now.version, cloud.Project, now.channel, err),
			"corpus point %s %s VERSION goes back to the version before", cloud.Project, now.channel))
	}
	return nil
}

// edit changes a cloud: it shows the change, asks the person to confirm it, and publishes it as the next version. If
// another person publishes meanwhile, edit merges the two changes and shows the result again.
func (k *clouds) edit(ctx context.Context, change func(*cloud.Cloud) error) error {
	base, done, err := k.read(ctx)
	if err != nil {
		return err
	}
	defer func() { done() }()
	mine, err := base.data.Clone()
	if err != nil {
		return err
	}
	if err := change(mine); err != nil {
		return exit.WithCode(exit.Usage, err)
	}
	confirmed := ""
	for range publish.Attempts {
		answer, text, err := k.proposed(base, mine)
		if err != nil || text == "" {
			return errors.Join(err, k.unchanged(answer, err))
		}
		if text != confirmed {
			if err := k.confirm(ctx, answer, text); err != nil || k.dry {
				return err
			}
			confirmed = text
		}
		release, started, err := k.publishCloud(ctx, base)
		if err == nil {
			answer.Digest = string(release.Digest)
			return k.answerEdit(answer, started)
		}
		if !overtaken(err) {
			return code(err)
		}
		theirs, doneTheirs, err := k.read(ctx)
		if err != nil {
			return err
		}
		done()
		done = doneTheirs
		fmt.Fprintf(k.Err, "another person has published %s %s meanwhile\n", cloud.Project, theirs.version)
		if mine, err = cloud.Merge(base.data, mine, theirs.data); err != nil {
			return exit.WithCode(exit.Usage, err)
		}
		base = theirs
	}
	return diag.Busy.Hint(errors.New("other people publish all the time"), "run the command again")
}

// overtaken reports whether another person has published since the cloud was read.
func overtaken(err error) bool {
	var immutable *releases.Immutable
	var moved *releases.Moved
	return errors.As(err, &immutable) || errors.As(err, &moved)
}

// proposed allocates the values that a change leaves open, checks the result, and returns a description of the changes.
func (k *clouds) proposed(base *publishedCloud, mine *cloud.Cloud) (editedCloud, string, error) {
	answer := editedCloud{Project: cloud.Project, Channel: k.channel, Version: strconv.Itoa(base.next),
		Changes: []cloud.Change{}}
	if base.newest != nil {
		if err := mine.NumbersAfter(base.newest); err != nil {
			return answer, "", exit.WithCode(exit.Usage, err)
		}
	}
	if err := mine.Allocate(rand.Reader); err != nil {
		return answer, "", exit.WithCode(exit.Usage, err)
	}
	text, err := mine.Bytes()
	if err != nil {
		return answer, "", err
	}
	if _, err := cloud.Parse(cloud.Name, text); err != nil {
		return answer, "", exit.WithCode(exit.Usage, err)
	}
	if answer.Changes, err = cloud.Diff(base.data, mine); err != nil {
		return answer, "", err
	}
	return answer, cloud.Text(answer.Changes), durable.WriteFile(filepath.Join(base.tree, cloud.Name), text, 0o644)
}

func (k *clouds) unchanged(answer editedCloud, err error) error {
	if err != nil {
		return nil
	}
	answer.Version = ""
	return k.answer(answer, "nothing to change")
}

// confirm shows a change and asks whether to publish it.
func (k *clouds) confirm(ctx context.Context, answer editedCloud, text string) error {
	if k.dry && k.json {
		return k.JSON(answer)
	}
	out := k.Err
	if k.dry {
		out = k.Out
	}
	if _, err := io.WriteString(out, text); err != nil || k.dry {
		return err
	}
	return k.question(ctx, fmt.Sprintf("Sign and publish this as %s %s?", cloud.Project, answer.Version))
}

// publishCloud builds the tree of base, with the changed file, and publishes it. It prints the warnings of the rollout
// that starts, and returns a line about it; "" if none starts.
func (k *clouds) publishCloud(ctx context.Context, base *publishedCloud) (r artifact.Release, started string,
	err error) {
	publisher, err := k.pinned(ctx)
	if err != nil {
		return r, "", err
	}
	starter := k.starts(publisher, k.start)
	file := filepath.Join(filepath.Dir(base.tree), cloud.Project+".tar.zst")
	err = durable.Write(file, 0o644, func(w io.Writer) error {
		_, err := packaging.Build(ctx, base.tree, w, packaging.Options{})
		return err
	})
	if err != nil {
		return r, "", err
	}
	r, err = releases.Publish(ctx, publisher, releases.Request{Project: cloud.Project,
		Version: strconv.Itoa(base.next), File: file, Channel: k.channel, After: base.digest})
	if err != nil {
		return r, "", err
	}
	ref := artifact.Ref{Project: cloud.Project, Channel: k.channel}
	made := starter.kept(ref, r)
	starter.warnings(ctx, ref, made)
	if made != nil {
		started = "\n" + made.text(ref)
	}
	return r, started, nil
}

func (k *clouds) answerEdit(answer editedCloud, started string) error {
	if k.drafted != nil {
		return k.answerDraft()
	}
	if k.unanswered {
		return nil
	}
	return k.answer(answer, "published %s %s; %s/%s is %[2]s%[5]s", cloud.Project, answer.Version, cloud.Project,
		k.channel, started)
}
