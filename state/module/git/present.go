package git

import (
	"context"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// present implements git.present: a repository exists on the host.
type present struct {
	Name           string `sls:"name"`
	Force          bool   `sls:"force"`
	Bare           bool   `sls:"bare"`
	Template       string `sls:"template"`
	SeparateGitDir string `sls:"separate_git_dir"`
	Shared         any    `sls:"shared"`
	User           string `sls:"user"`
	Password       any    `sls:"password"`
	OutputEncoding any    `sls:"output_encoding"`

	place place
}

func (p *present) access() access { return access{User: p.User} }

func (p *present) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	var err error
	if p.place, err = placeOf(h, p.Name); err != nil {
		return module.Diff{}, err
	}
	as := p.access()
	if err := as.actFor(h, p.Name); err != nil {
		return module.Diff{}, err
	}
	p.User = as.User
	if what, err := p.access().awaits(h); err != nil || what != "" {
		return module.Awaits(what, "make the repository "+p.Name), err
	}
	if p.place == checkout {
		_, err := h.Files.Stat(path.Join(p.Name, ".git"))
		if bare := err != nil; bare == p.Bare || !p.Force {
			return module.Diff{Comment: p.Name + " is a repository"}, nil
		}
		p.place = occupied
	}
	changes := value.NewMap("new", p.Name)
	if p.place == occupied {
		if !p.Force {
			return module.Diff{}, inTheWay(h, p.Name, "force")
		}
		changes.Set("forced init", true)
	}
	return module.Diff{Changes: changes, Comment: "would make the repository " + p.Name}, nil
}

func (p *present) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if what, err := p.access().awaits(h); err != nil || what != "" {
		return module.Report{}, p.access().absent(what, err)
	}
	if p.place == occupied {
		if err := empty(h, p.Name); err != nil {
			return module.Report{}, err
		}
	}
	if _, err := p.access().git().Do(ctx, h, p.init()...); err != nil {
		return module.Report{}, err
	}
	return module.Report{Changes: d.Changes, Comment: "made the repository " + p.Name}, nil
}

// init returns the arguments of git that create the repository.
func (p *present) init() []string {
	args := []string{"init", "--quiet"}
	if p.Bare {
		args = append(args, "--bare")
	}
	for option, v := range map[string]string{"--template=": p.Template, "--separate-git-dir=": p.SeparateGitDir} {
		if v != "" {
			args = append(args, option+v)
		}
	}
	if value.Truth(p.Shared) {
		args = append(args, "--shared="+strings.ToLower(value.Str(p.Shared)))
	}
	return append(args, "--", p.Name)
}
