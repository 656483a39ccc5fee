package releases

import (
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact"
	"github.com/corpus-agent/corpus-agent/artifact/publish"
	"github.com/corpus-agent/corpus-agent/artifact/trust"
	"github.com/corpus-agent/corpus-agent/state/diag"
)

// Yanked is the result of withdrawing a version.
type Yanked struct {
	Release  artifact.Release `json:"release"`
	Yank     trust.Yank       `json:"yank"`
	Channels []string         `json:"channels"` // channels that name it; their hosts stay on it
}

// Yank withdraws a version: hosts that run it report that, and no other host gets it. The artifact stays in the store,
// since hosts that run it may have to fetch it again.
func Yank(ctx context.Context, p *publish.Publisher, project, version, reason string) (Yanked, error) {
	var result Yanked
	err := yanks(ctx, p, project, version, func(r artifact.Release, role *trust.Role, yanks map[string]trust.Yank) error {
		if _, again := yanks[version]; !again {
			yanks[version] = trust.Yank{Digest: r.Digest, Reason: oneLine(reason), At: p.Time().UTC().Truncate(time.Second)}
		}
		channels, err := trust.Channels(role)
		if err != nil {
			return err
		}
		result = Yanked{Release: r, Yank: yanks[version], Channels: []string{}}
		for name, pointer := range channels {
			if pointer.Version == version {
				result.Channels = append(result.Channels, name)
			}
		}
		slices.Sort(result.Channels)
		return nil
	})
	return result, err
}

// Unyank undoes a withdrawal.
func Unyank(ctx context.Context, p *publish.Publisher, project, version string) (artifact.Release, error) {
	var release artifact.Release
	err := yanks(ctx, p, project, version, func(r artifact.Release, _ *trust.Role, yanks map[string]trust.Yank) error {
		release = r
		delete(yanks, version)
		return nil
	})
	return release, err
}

// yanks changes the set of withdrawn versions of a project.
func yanks(ctx context.Context, p *publish.Publisher, project, version string,
	edit func(artifact.Release, *trust.Role, map[string]trust.Yank) error) error {
	if err := errors.Join(trust.CheckProject(project), artifact.CheckVersion(version)); err != nil {
		return err
	}
	return p.Change(ctx, func(n *publish.Next) error {
		role, err := n.Client.Whole(ctx, project)
		if err != nil {
			return err
		}
		releases := trust.Releases(project, role)
		i := slices.IndexFunc(releases, func(r artifact.Release) bool { return r.Version == version })
		if i < 0 {
			return publish.NewMistake(diag.Unpublished, "`corpus ls` shows the versions there are",
				"the project has no such version: %s %s", project, version)
		}
		yanks, err := trust.Yanks(role)
		if err != nil {
			return err
		}
		if err := edit(releases[i], role, yanks); err != nil {
			return err
		}
		n.Roles[project] = role
		return trust.SetYanks(role, yanks)
	})
}

// oneLine returns a reason on one line, for tables and logs.
func oneLine(s string) string { return strings.Join(strings.Fields(s), " ") }
