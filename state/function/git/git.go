// Package git implements git.*: functions that read checkouts, and git.clone.
package git

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/artifact/clone"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/function/ospath"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

type git struct{ *function.Facts }

// gitAs are the parameters that all functions of git end with.
const gitAs = "user=None, password=None, ignore_retcode=False, output_encoding=None"

// Functions returns the functions of git that templates may call.
func Functions(f *function.Facts) function.Table {
	g := git{f}
	return function.Table{
		"git.current_branch": function.Of("cwd, "+gitAs, g.at("rev-parse", "--abbrev-ref", "HEAD")),
		"git.revision":       function.Of("cwd, rev='HEAD', short=False, "+gitAs, g.revision),
		"git.rev_parse":      function.Of("cwd, rev=None, opts='', git_opts='', "+gitAs, g.revParse),
		"git.describe":       function.Of("cwd, rev='HEAD', "+gitAs, g.describe),
		"git.list_branches":  function.Of("cwd, remote=False, "+gitAs, g.branches),
		"git.list_tags":      function.Of("cwd, "+gitAs, g.tags),
		"git.symbolic_ref":   function.Of("cwd, ref, "+gitAs, g.symbolicRef),
		"git.remotes": function.Of(
			"cwd, user=None, password=None, redact_auth=True, ignore_retcode=False, output_encoding=None", g.remotes),
		"git.remote_get": function.Of(
			"cwd, remote='origin', user=None, password=None, redact_auth=True, ignore_retcode=False, output_encoding=None",
			g.remote),
		"git.config_get": function.Of(
			"key, cwd=None, user=None, password=None, ignore_retcode=False, output_encoding=None, **kwargs", g.config),
		"git.status":      function.Of("cwd, "+gitAs, g.status),
		"git.is_worktree": function.Of("cwd, user=None, password=None, output_encoding=None", g.isWorktree),
		"git.version":     function.Of("versioninfo=False", g.version),
	}.Needing(f.Host, "git", "git")
}

// where holds a checkout and the user as whom git runs in it.
type where struct{ dir, user string }

// run runs git and returns its output. git never prompts for a password.
func (g git) run(ctx context.Context, at where, args ...string) (string, error) {
	out, err := g.try(ctx, at, args...)
	if err == nil && out.Code != 0 {
		err = fmt.Errorf("git %s ended with code %d: %s", args[0], out.Code, redact.URLs(function.LastLine(out.Stderr)))
	}
	return out.Stdout, err
}

func (g git) try(ctx context.Context, at where, args ...string) (host.Output, error) {
	dir := ospath.Expand(g.Host, at.dir)
	if dir != "" && !path.IsAbs(dir) {
		dir = path.Join(ospath.Expand(g.Host, "~"+at.user), dir)
	}
	as := at.user
	if as == "" && dir != "" { // the configuration of a clone may name programs that git runs
		owner, err := g.Host.OwnerOf(dir)
		if err != nil {
			return host.Output{}, err
		}
		as = owner
	}
	if dir != "" {
		if err := g.Host.CheckClone(dir, as); err != nil {
			return host.Output{}, err
		}
	}
	return g.Output(ctx, host.Line{Argv: append([]string{"git"}, args...), Dir: dir, RunAs: as,
		Env: append(clone.Config(), "GIT_TERMINAL_PROMPT=0", "GIT_OPTIONAL_LOCKS=0", "SUDO_UID=")})
}

// at returns a function that runs git with fixed arguments in a checkout.
func (g git) at(args ...string) any {
	return func(ctx context.Context, cwd, user string, _, _, _ any) (string, error) {
		return g.run(ctx, where{cwd, user}, args...)
	}
}

func (g git) revision(ctx context.Context, cwd, rev string, short bool, user string, _, _, _ any) (string, error) {
	args := []string{"rev-parse"}
	if short {
		args = append(args, "--short")
	}
	return g.run(ctx, where{cwd, user}, append(args, rev)...)
}

func (g git) revParse(ctx context.Context, cwd string, rev *string, options, gitOptions, user string, _, _,
	_ any) (string, error) {
	before, errB := value.SplitWords(gitOptions)
	after, errA := value.SplitWords(options)
	if errB != nil || errA != nil {
		return "", fmt.Errorf("options %q: a quote is not ended", gitOptions+" "+options)
	}
	args := append(append(before, "rev-parse"), after...)
	if rev != nil {
		args = append(args, *rev)
	}
	return g.run(ctx, where{cwd, user}, args...)
}

func (g git) describe(ctx context.Context, cwd, rev, user string, _, _, _ any) (string, error) {
	return g.run(ctx, where{cwd, user}, "describe", "--always", rev)
}

func (g git) symbolicRef(ctx context.Context, cwd, ref, user string, _, _, _ any) (string, error) {
	return g.run(ctx, where{cwd, user}, "symbolic-ref", ref)
}

func (g git) branches(ctx context.Context, cwd string, remote bool, user string, _, _, _ any) ([]string, error) {
	if remote {
		return g.refs(ctx, where{cwd, user}, "refs/remotes/")
	}
	return g.refs(ctx, where{cwd, user}, "refs/heads/")
}

func (g git) tags(ctx context.Context, cwd, user string, _, _, _ any) ([]string, error) {
	return g.refs(ctx, where{cwd, user}, "refs/tags/")
}

func (g git) refs(ctx context.Context, at where, below string) ([]string, error) {
	text, err := g.run(ctx, at, "for-each-ref", "--format", "%(refname:short)", below)
	return value.SplitLines(text, false), err
}

// remotes returns the URLs of all remotes for fetch and push.
func (g git) remotes(ctx context.Context, cwd, user string, _ any, redacted bool, _, _ any) (*value.Map, error) {
	text, err := g.run(ctx, where{cwd, user}, "remote", "--verbose")
	all := value.NewMap()
	for line := range strings.Lines(text) {
		f := strings.Fields(line)
		if len(f) != 3 {
			continue
		}
		if redacted {
			f[1] = strings.ReplaceAll(redact.URLs(f[1]), redact.Mark, "<redacted>") // Salt's word
		}
		urls, ok := all.Value(f[0]).(*value.Map)
		if !ok {
			urls = value.NewMap()
			all.Set(f[0], urls)
		}
		urls.Set(strings.Trim(f[2], "()"), f[1])
	}
	return all, err
}

func (g git) remote(ctx context.Context, cwd, name, user string, _ any, redacted bool, _, _ any) (any, error) {
	all, err := g.remotes(ctx, cwd, user, nil, redacted, nil, nil)
	if err != nil {
		return nil, err
	}
	if urls, ok := all.Get(name); ok {
		return urls, nil
	}
	return nil, fmt.Errorf("%s has no remote %s", cwd, name)
}

func (g git) config(ctx context.Context, key string, cwd *string, user string, _, _, _ any, options *value.Map) (any,
	error) {
	scope, at := "--local", where{user: user}
	switch {
	case value.Truth(options.Value("global")):
		scope = "--global"
	case cwd == nil:
		return nil, function.TypeError("missing argument cwd, since global is not true")
	default:
		at.dir = *cwd
	}
	out, err := g.try(ctx, at, "config", scope, "--get-all", key)
	if err != nil || out.Code == 1 {
		return nil, err
	}
	all := value.SplitLines(out.Stdout, false)
	if value.Truth(options.Value("all")) {
		return all, nil
	}
	if len(all) == 0 {
		return "", nil
	}
	return all[len(all)-1], nil
}

// status returns the files of a checkout that differ from the last commit.
func (g git) status(ctx context.Context, cwd, user string, _, _, _ any) (*value.Map, error) {
	out, err := g.run(ctx, where{cwd, user}, "status", "-z", "--porcelain")
	kinds := map[string]string{"M": "modified", "A": "new", "D": "deleted", "??": "untracked"}
	all := value.NewMap()
	for entry := range strings.SplitSeq(out, "\x00") {
		f := value.Fields(entry, 1)
		if len(f) != 2 {
			continue
		}
		kind := f[0]
		if name, ok := kinds[kind]; ok {
			kind = name
		}
		files, ok := all.Value(kind).(*value.List)
		if !ok {
			files = value.NewList()
			all.Set(kind, files)
		}
		files.Append(f[1])
	}
	return all, err
}

// isWorktree reports whether a checkout shares the repository of another.
func (g git) isWorktree(ctx context.Context, cwd, user string, _, _ any) (bool, error) {
	out, err := g.try(ctx, where{cwd, user}, "rev-parse", "--show-toplevel")
	if err != nil || out.Code != 0 {
		return false, err
	}
	text, err := function.ReadText(g.Host, path.Join(out.Stdout, ".git"))
	if err != nil {
		return false, nil
	}
	target, ok := strings.CutPrefix(text, "gitdir: ")
	return ok && path.IsAbs(target), nil
}

func (g git) version(ctx context.Context, asList bool) (any, error) {
	text, err := g.run(ctx, where{}, "--version")
	if err != nil {
		return nil, err
	}
	f := strings.Fields(strings.Split(text, "(")[0])
	if len(f) == 0 {
		return "unknown", nil
	}
	version := f[len(f)-1]
	if !asList {
		return version, nil
	}
	parts := value.NewList()
	for part := range strings.SplitSeq(version, ".") {
		if n, err := value.ParseInt(part, 10); err == nil {
			parts.Append(n)
		} else {
			parts.Append(part)
		}
	}
	return parts, nil
}
