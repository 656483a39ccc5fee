package git_test

import (
	"context"
	"os"
	"os/exec"
	"slices"
	"strings"
	"testing"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/module/git"
	"github.com/corpus-agent/corpus-agent/state/statetest"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// runGit runs the host's git on the tree of a case, whose paths it replaces by the real ones.
func runGit(h *statetest.Host, args []string, env []string) (string, error) {
	realPath := func(s string) string {
		for _, dir := range []string{"/srv", "/opt"} {
			s = strings.ReplaceAll(s, dir, h.Dir+dir)
		}
		return s
	}
	for i := range args {
		args[i] = realPath(args[i])
	}
	cmd := exec.Command("git", args...)
	cmd.Dir = h.Dir
	// The home directory comes last and thus has precedence, so that no test uses that of the developer.
	cmd.Env = append(slices.Clone(env), "PATH="+os.Getenv("PATH"), "HOME="+h.Dir+"/srv", "XDG_CONFIG_HOME="+h.Dir+"/srv",
		"GIT_CONFIG_GLOBAL="+h.Dir+"/srv/.gitconfig",
		"GIT_CONFIG_NOSYSTEM=1", "GIT_AUTHOR_NAME=a", "GIT_AUTHOR_EMAIL=a@b", "GIT_COMMITTER_NAME=a",
		"GIT_COMMITTER_EMAIL=a@b",
		"GIT_AUTHOR_DATE=1700000000 +0000", "GIT_COMMITTER_DATE=1700000000 +0000")
	var stderr strings.Builder
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		return strings.ReplaceAll(string(out), h.Dir, ""),
			statetest.Exit{Code: cmd.ProcessState.ExitCode(), Text: strings.ReplaceAll(stderr.String(), h.Dir, "")}
	}
	return strings.ReplaceAll(string(out), h.Dir, ""), nil
}

// do runs git for the test itself.
func do(t *testing.T, h *statetest.Host, args ...string) string {
	t.Helper()
	out, err := runGit(h, args, nil)
	if err != nil {
		t.Fatalf("git %q: %v", args, err)
	}
	return strings.TrimSpace(out)
}

// remote creates a repository with two commits: first, at the tag v1, and second, at the branches master and
// next.
func remote(t *testing.T, h *statetest.Host) {
	t.Helper()
	do(t, h, "init", "--quiet", "--initial-branch=master", "/srv/remote")
	for _, name := range []string{"first", "second"} {
		commit(t, h, "/srv/remote", name)
		if name == "first" {
			do(t, h, "-C", "/srv/remote", "tag", "v1")
		}
	}
	do(t, h, "-C", "/srv/remote", "branch", "next")
}

func commit(t *testing.T, h *statetest.Host, dir, name string) {
	t.Helper()
	h.Build(t, statetest.Tree{dir + "/file": statetest.File(name)})
	do(t, h, "-C", dir, "add", "file")
	do(t, h, "-C", dir, "commit", "--quiet", "--message", name)
}

func suite(t *testing.T) statetest.Suite {
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("this machine has no git to test with")
	}
	return statetest.Suite{
		State:     "git",
		Functions: func(*statetest.Host) module.Table { return git.Tables()["git"] },
		Prepare: func(t *testing.T, h *statetest.Host) {
			h.Provide(t, map[string]statetest.Program{"git": func(args []string, c host.Command) (string, error) {
				return runGit(h, args, c.Env)
			}})
			remote(t, h)
		},
	}
}

func revision(h *statetest.Host, t *testing.T, rev string) string {
	return do(t, h, "-C", "/srv/remote", "rev-parse", rev)
}

func args(items ...any) *value.Map { return value.NewMap(items...) }

func TestConformance(t *testing.T) {
	s := suite(t)
	s.Cases = slices.Concat(latestCases(), others())
	statetest.Run(t, s)
}

// clone returns a Setup that clones the remote repository.
func clone(more ...string) func(t *testing.T, h *statetest.Host) {
	return func(t *testing.T, h *statetest.Host) {
		do(t, h, append([]string{"clone", "--quiet"}, append(more, "/srv/remote", "/opt/app")...)...)
	}
}

// latestCases returns the cases of git.latest.
func latestCases() []statetest.Case {
	back := func(t *testing.T, h *statetest.Host) {
		clone()(t, h)
		do(t, h, "-C", "/opt/app", "reset", "--quiet", "--hard", "v1")
	}
	latest := func(name string, setup func(t *testing.T, h *statetest.Host), content string, want *statetest.Want,
		more ...any) statetest.Case {
		c := statetest.Case{Name: "latest/" + name, Function: "latest", Setup: setup, First: want,
			Arguments: args(append([]any{"name", "/srv/remote", "target", "/opt/app"}, more...)...)}
		if content != "" {
			c.After = statetest.Tree{"/opt/app/file": statetest.File(content)}
		}
		return c
	}
	ok := &statetest.Want{Result: true}
	same := &statetest.Want{Result: true, Changes: value.NewMap()}
	return []statetest.Case{
		latest("a clone", nil, "second", &statetest.Want{Result: true, Comment: "cloned /srv/remote to /opt/app"}),
		latest("a clone of a tag", nil, "first", ok, "rev", "v1"),
		latest("a clone of a branch, on a branch", nil, "second", ok, "rev", "next", "branch", "mine"),
		latest("a bare clone", nil, "", ok, "bare", true),
		latest("a mirror", nil, "", ok, "mirror", true),
		latest("a shallow clone", nil, "first", ok, "depth", 1, "rev", "v1"),
		latest("as declared", clone(), "second", same),
		latest("an older commit", back, "second", ok),
		latest("an older revision", clone(),
			"second", &statetest.Want{Result: false, Comment: "has commits that v1", Hint: "force_reset: True"}, "rev", "v1"),
		latest("an older revision, by force", clone(), "first", ok, "rev", "v1", "force_reset", true),
		latest("another branch", clone(), "second", ok, "rev", "next", "branch", "next"),
		latest("a file that was changed", func(t *testing.T, h *statetest.Host) {
			back(t, h)
			h.Build(t, statetest.Tree{"/opt/app/file": statetest.File("mine")})
		}, "mine", &statetest.Want{Result: false, Hint: "force_reset: True"}),
		latest("a file that was changed, by force", func(t *testing.T, h *statetest.Host) {
			clone()(t, h)
			h.Build(t, statetest.Tree{"/opt/app/file": statetest.File("mine")})
		}, "second", &statetest.Want{Result: true, Changes: value.NewMap("forced update", true)}, "force_reset", true),
		latest("a file that was changed, without an update", func(t *testing.T, h *statetest.Host) {
			clone()(t, h)
			h.Build(t, statetest.Tree{"/opt/app/file": statetest.File("mine")})
		}, "mine", &statetest.Want{Result: true, Changes: value.NewMap(), Comment: "not committed"}),
		latest("an update with a staged change", func(t *testing.T, h *statetest.Host) {
			back(t, h)
			h.Build(t, statetest.Tree{"/opt/app/mine": statetest.File("mine")})
			do(t, h, "-C", "/opt/app", "add", "mine")
		}, "first", &statetest.Want{Result: false, Comment: "has changes that are not committed", Hint: "force_reset: True"}),
		latest("an update of a changed file, with remote-changes", func(t *testing.T, h *statetest.Host) {
			back(t, h)
			h.Build(t, statetest.Tree{"/opt/app/file": statetest.File("mine")})
		}, "second", ok, "force_reset", "remote-changes"),
		latest("a change without an update, with remote-changes", func(t *testing.T, h *statetest.Host) {
			clone()(t, h)
			h.Build(t, statetest.Tree{"/opt/app/file": statetest.File("mine")})
		}, "mine", same, "force_reset", "remote-changes"),
		latest("a checkout in the place of a bare repository", clone("--bare"),
			"", &statetest.Want{Result: false, Comment: "is a bare repository", Hint: "force_clone"}),
		latest("a bare repository in the place of a checkout", clone(),
			"second", &statetest.Want{Result: false, Comment: "is not a bare repository"}, "bare", true),
		latest("from another repository", func(t *testing.T, h *statetest.Host) {
			clone()(t, h)
			do(t, h, "-C", "/opt/app", "remote", "set-url", "origin", "/srv/old")
		}, "second", &statetest.Want{Result: true, Changes: value.NewMap("new", "/srv/remote => origin")}),
		latest("tags are added and removed", func(t *testing.T, h *statetest.Host) {
			clone()(t, h)
			do(t, h, "-C", "/opt/app", "tag", "old")
			do(t, h, "-C", "/srv/remote", "tag", "v2")
		}, "", &statetest.Want{Result: true, Changes: value.NewMap("new_tags", value.Strings("v2"),
			"deleted_tags", value.Strings("old"))}),
		latest("another directory is in the place", func(t *testing.T, h *statetest.Host) {
			h.Build(t, statetest.Tree{"/opt/app/x": statetest.File("")})
		}, "",
			&statetest.Want{Result: false, Comment: "is not a repository", Hint: "force_clone"}),
		latest("another directory is in the place, by force", func(t *testing.T, h *statetest.Host) {
			h.Build(t, statetest.Tree{"/opt/app/x": statetest.File("")})
		},
			"second", ok, "force_clone", true),
		latest("an old bare repository", func(t *testing.T, h *statetest.Host) {
			do(t, h, "clone", "--quiet", "--mirror", "/srv/remote", "/opt/app")
			commit(t, h, "/srv/remote", "third")
		}, "", ok, "mirror", true),
		latest("no such revision", nil,
			"", &statetest.Want{Result: false, Comment: "has no revision nxt", Hint: `did you mean "next"?`}, "rev", "nxt"),
		latest("a path that is not absolute", nil,
			"", &statetest.Want{Result: false, Comment: "not absolute"}, "target", "app"),
		latest("no user", nil, "", &statetest.Want{Result: false, Comment: "user zoe does not exist", Hint: "require"},
			"user", "zoe"),
		latest("no key", nil, "", &statetest.Want{Result: false, Comment: "the key /srv/key does not exist"},
			"identity", "/srv/key"),
		{Name: "latest/no repository", Function: "latest", Arguments: args("name", "/srv/gone", "target", "/opt/app"),
			First: &statetest.Want{Result: false, Comment: "the repository /srv/gone cannot be reached",
				Hint: "check its URL"}},
	}
}

// others returns the cases of the other functions.
func others() []statetest.Case {
	ok := &statetest.Want{Result: true}
	return []statetest.Case{
		{Name: "cloned/a clone", Function: "cloned",
			Arguments: args("name", "/srv/remote", "target", "/opt/app", "branch", "next"),
			First:     &statetest.Want{Result: true, Changes: value.NewMap("new", "/srv/remote => /opt/app")}},
		{Name: "cloned/another branch", Function: "cloned",
			Arguments: args("name", "/srv/remote", "target", "/opt/app", "branch", "next"), Setup: clone(),
			First: &statetest.Want{Result: true, Changes: value.NewMap("branch", value.NewMap("old", "master", "new", "next"))}},
		{Name: "cloned/no branch", Function: "cloned",
			Arguments: args("name", "/srv/remote", "target", "/opt/app", "branch", "nex"),
			First:     &statetest.Want{Result: false, Hint: `did you mean "next"?`}},
		{Name: "detached/a clone", Function: "detached",
			Arguments: args("name", "/srv/remote", "target", "/opt/app", "rev", "v1"), First: ok,
			After: statetest.Tree{"/opt/app/file": statetest.File("first")}},
		{Name: "detached/an existing clone", Function: "detached",
			Arguments: args("name", "/srv/remote", "target", "/opt/app", "rev", "v1"), First: ok, Setup: clone(),
			After: statetest.Tree{"/opt/app/file": statetest.File("first")}},
		{Name: "detached/changes are discarded", Function: "detached",
			Arguments: args("name", "/srv/remote", "target", "/opt/app", "rev", "v1", "hard_reset", true),
			First:     ok, Setup: func(t *testing.T, h *statetest.Host) {
				clone()(t, h)
				h.Build(t, statetest.Tree{"/opt/app/file": statetest.File("mine")})
			}, After: statetest.Tree{"/opt/app/file": statetest.File("first")}},
		{Name: "present/bare", Function: "present", Arguments: args("name", "/opt/new"),
			First: &statetest.Want{Result: true, Changes: value.NewMap("new", "/opt/new")},
			After: statetest.Tree{"/opt/new/HEAD": {Kind: "file"}}},
		{Name: "present/with a checkout", Function: "present", Arguments: args("name", "/opt/new", "bare", false), First: ok,
			After: statetest.Tree{"/opt/new/.git": statetest.Dir()}},
		{Name: "present/another directory is in the place", Function: "present", Arguments: args("name", "/srv"),
			First: &statetest.Want{Result: false, Hint: "force: True"}},
		{Name: "config_set/a value", Function: "config_set",
			Arguments: args("name", "user.name", "value", "me", "repo", "/srv/remote"),
			First: &statetest.Want{Result: true,
				Changes: value.NewMap("user.name", value.NewMap("old", nil, "new", value.Strings("me")))}},
		{Name: "config_set/another value", Function: "config_set",
			Arguments: args("name", "http.extraHeader", "value", "Token: new", "repo", "/srv/remote"),
			Setup: func(t *testing.T, h *statetest.Host) {
				do(t, h, "-C", "/srv/remote", "config", "http.extraHeader", "Token: old")
			}, First: &statetest.Want{Result: true, Changes: value.NewMap("http.extraHeader",
				value.NewMap("old", value.Strings("<not shown>"), "new", value.Strings("Token: new")))}},
		{Name: "config_set/several", Function: "config_set",
			Arguments: args("name", "a.b", "multivar", value.Strings("x", "y"), "repo", "/srv/remote"), First: ok},
		{Name: "config_set/special characters", Function: "config_set",
			Arguments: args("name", "a.b", "value", " a\"b\\c;#$HOME `id` %s\n\tEND ", "repo", "/srv/remote"), First: ok,
			Second: &statetest.Want{Result: true, Changes: value.NewMap()}},
		{Name: "config_set/for all repositories", Function: "config_set",
			Arguments: args("name", "user.name", "value", "me", "global", true), First: ok,
			After: statetest.Tree{"/srv/.gitconfig": statetest.File("[user]\n\tname = me\n")}},
		{Name: "config_set/no repository", Function: "config_set", Arguments: args("name", "user.name", "value", "me"),
			First: &statetest.Want{Result: false, Hint: "global: True"}},
		{Name: "config_unset/a value", Function: "config_unset", Arguments: args("name", "a.*", "repo", "/srv/remote"),
			Setup: func(t *testing.T, h *statetest.Host) { do(t, h, "-C", "/srv/remote", "config", "a.b", "c") },
			First: &statetest.Want{Result: true, Changes: value.NewMap("a.b", value.Strings("<not shown>"))}},
		{Name: "config_unset/several", Function: "config_unset", Arguments: args("name", "a.b", "repo", "/srv/remote"),
			Setup: func(t *testing.T, h *statetest.Host) {
				do(t, h, "-C", "/srv/remote", "config", "--add", "a.b", "c")
				do(t, h, "-C", "/srv/remote", "config", "--add", "a.b", "d")
			}, First: &statetest.Want{Result: false, Hint: "all: True"}},
		{Name: "config_unset/one of several", Function: "config_unset",
			Arguments: args("name", "a.b", "repo", "/srv/remote", "value_regex", "^c$"),
			Setup: func(t *testing.T, h *statetest.Host) {
				do(t, h, "-C", "/srv/remote", "config", "--add", "a.b", "c")
				do(t, h, "-C", "/srv/remote", "config", "--add", "a.b", "d")
			}, First: &statetest.Want{Result: true, Changes: value.NewMap("a.b", value.Strings("<not shown>"))}},
	}
}

// TestDryRunNamesTheCommit checks that a dry run names the commit, also for an abbreviated hash.
func TestDryRunNamesTheCommit(t *testing.T) {
	s := suite(t)
	h := statetest.NewHost(t)
	s.Prepare(t, h)
	for rev, at := range map[string]string{"HEAD": "master", revision(h, t, "v1")[:8]: "v1", revision(h, t, "v1"): "v1"} {
		resource := git.Tables()["git"]["latest"]()
		if _, problems := module.Decode(resource,
			module.Call{Arguments: args("name", "/srv/remote", "target", "/opt/app", "rev", rev)}); len(problems) > 0 {
			t.Fatal(problems)
		}
		d, err := resource.Check(context.Background(), h.Host)
		if err != nil {
			t.Fatal(err)
		}
		got, _ := value.Lookup(d.Changes, "revision:new", ":")
		if want := revision(h, t, at); got != want {
			t.Errorf("a dry run predicts %v for %s, want %s", rev, got, want)
		}
	}
}

// TestPasswords checks that passwords are in no command line and no error.
func TestPasswords(t *testing.T) {
	h := statetest.NewHost(t)
	var env []string
	h.Provide(t, map[string]statetest.Program{"git": func(args []string, c host.Command) (string, error) {
		if strings.Contains(strings.Join(args, " "), "s3cret") {
			t.Errorf("the password is on the command line: %q", args)
		}
		env = c.Env
		return "", statetest.Exit{Code: 128, Text: "fatal: Authentication failed for 'https://me:s3cret@example.org/x'"}
	}})
	for _, arguments := range []*value.Map{
		args("name", "https://me:s3cret@example.org/x", "target", "/opt/app"),
		args("name", "https://example.org/x", "target", "/opt/app", "https_user", "me", "https_pass", "s3cret"),
		args("name", "https://me:s3cret/x@example.org/x", "target", "/opt/app"),
		args("name", "https://me:s3cret%x@example.org/x", "target", "/opt/app"),
	} {
		resource := git.Tables()["git"]["latest"]()
		if _, problems := module.Decode(resource, module.Call{Arguments: arguments}); len(problems) > 0 {
			t.Fatal(problems)
		}
		_, err := resource.Check(context.Background(), h.Host)
		if err == nil || strings.Contains(err.Error()+diag.HintOf(err), "s3cret") ||
			!strings.Contains(err.Error(), "Authentication failed") {
			t.Errorf("the error is %v", err)
		}
		if !strings.Contains(strings.Join(env, "\n"), "CORPUS_GIT_PASSWORD=s3cret") {
			t.Errorf("git does not get the password: %q", env)
		}
	}
}

// TestErrorsHaveTheReasonOfGit checks that an error has git's own reason.
func TestErrorsHaveTheReasonOfGit(t *testing.T) {
	for stderr, want := range map[string][2]string{
		"fatal: detected dubious ownership in repository at '/srv/git/app.git'\nTo add an exception for this directory, " +
			"call:\n\n\tgit config --global --add safe.directory /srv/git/app.git\n" +
			"fatal: Could not read from remote repository.\n\nPlease make sure you have the correct access rights\nand the " +
			"repository exists.": {"fatal: detected dubious ownership in repository at '/srv/git/app.git'", "safe.directory"},
		"ssh: Could not resolve hostname h: Name or service not known\nfatal: Could not read from remote repository.\n\n" +
			"Please make sure you have the correct access rights\nand the repository exists.": {"Could not resolve hostname h",
			"network"},
	} {
		h := statetest.NewHost(t)
		h.Provide(t, map[string]statetest.Program{"git": func([]string, host.Command) (string, error) {
			return "", statetest.Exit{Code: 128, Text: stderr}
		}})
		resource := git.Tables()["git"]["latest"]()
		_, _ = module.Decode(resource, module.Call{Arguments: args("name", "file:///srv/git/app.git", "target", "/opt/app")})
		_, err := resource.Check(context.Background(), h.Host)
		if err == nil || !strings.Contains(err.Error(), want[0]) || strings.Contains(err.Error(), "access rights") ||
			!strings.Contains(diag.HintOf(err), want[1]) {
			t.Errorf("the error is %v\nhint: %s", err, diag.HintOf(err))
		}
	}
}

// TestMissingLocalRepositoryIsUnknown checks that a missing repository on the host is a missing directory, since an
// earlier state may create it. An existing or a remote repository is not.
func TestMissingLocalRepositoryIsUnknown(t *testing.T) {
	for name, c := range map[string]struct {
		existing string
		missing  bool
	}{
		"/srv/git/app.git":                 {"", true},
		"file:///srv/git/app.git":          {"", true},
		"file://localhost/srv/git/app.git": {"", true},
		"/srv/git/there.git":               {"/srv/git/there.git", false},
		"/srv/git/there":                   {"/srv/git/there.git", false},
		"file://server/srv/git/app.git":    {"", false},
		"https://server/srv/git/app.git":   {"", false},
		"git@server:/srv/git/app.git":      {"", false},
	} {
		for function, arguments := range map[string]*value.Map{
			"latest": args("name", name, "target", "/opt/app"), "cloned": args("name", name, "target", "/opt/app"),
			"detached": args("name", name, "target", "/opt/app", "rev", "v1"),
		} {
			h := statetest.NewHost(t)
			if c.existing != "" {
				h.Build(t, statetest.Tree{c.existing + "/HEAD": statetest.File("broken")})
			}
			h.Provide(t, map[string]statetest.Program{"git": func([]string, host.Command) (string, error) {
				return "", statetest.Exit{Code: 128, Text: "fatal: '" + name + "' does not appear to be a git repository"}
			}})
			resource := git.Tables()["git"][function]()
			if _, problems := module.Decode(resource, module.Call{Arguments: arguments}); len(problems) > 0 {
				t.Fatal(problems)
			}
			_, err := resource.Check(context.Background(), h.Host)
			if err == nil || (host.MissingOf(err).Thing == host.ADirectory) != c.missing ||
				!strings.Contains(err.Error(), "does not appear to be") || diag.HintOf(err) == "" {
				t.Errorf("git.%s of %s: missing %q, want %t; the error is %v, hint %q", function, name, host.MissingOf(err).Thing,
					c.missing, err, diag.HintOf(err))
			}
		}
	}
}

// TestMissingGit checks that the error names the package to install.
func TestMissingGit(t *testing.T) {
	h := statetest.NewHost(t)
	h.Commands = statetest.Commands(func(host.Command) (host.Output, error) { return host.Output{}, nil })
	resource := git.Tables()["git"]["latest"]()
	_, _ = module.Decode(resource, module.Call{Arguments: args("name", "/srv/remote", "target", "/opt/app")})
	d, err := resource.Check(context.Background(), h.Host)
	if err != nil || !d.Unknown {
		t.Fatalf("without git a check gives %+v, %v", d, err)
	}
	_, err = resource.Apply(context.Background(), h.Host, d)
	if err == nil || !strings.Contains(diag.HintOf(err), "install the package git") {
		t.Errorf("without git a run gives %v (hint: %s)", err, diag.HintOf(err))
	}
}
