package git

import (
	"context"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/function"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Acting returns the functions of git that change the host.
func Acting(f *function.Facts) function.Table {
	cloned := function.ByState{Signature: "cwd, url=None, name=None, opts='', git_opts='', user=None, password=None, " +
		"identity=None, https_user=None, https_pass=None",
		State: "git.cloned", Rename: map[string]string{"url": "name", "cwd": "target"},
		Without: []string{"opts", "git_opts", "password", "ignore_retcode", "saltenv", "output_encoding"}, True: true}
	return function.Table{"git.clone": function.Of(cloned.Signature+", **kwargs", git{f}.clone(cloned))}
}

// clone clones a repository into the directory cwd, or into the directory name below it. Of git's options it
// supports --branch.
func (g git) clone(d function.ByState) any {
	do := d.Function(g.Facts)
	return func(ctx context.Context, a function.Arguments) (any, error) {
		words, err := value.SplitWords(value.Str(orText(a.Value("opts"))) + " " + value.Str(orText(a.Value("git_opts"))))
		if err != nil {
			return nil, err
		}
		branch, err := branchOf(words)
		if err != nil {
			return nil, err
		}
		url, isText := a.Value("url").(string)
		if !isText || url == "" || strings.HasPrefix(url, "-") {
			return nil, function.TypeError("git.clone requires the argument url")
		}
		b := function.Arguments{Map: a.Clone()}
		if name, ok := a.Value("name").(string); ok && name != "" {
			b.Set("cwd", path.Join(value.Str(a.Value("cwd")), name))
		}
		b.Delete("name")
		if branch != "" {
			b.Set("branch", branch)
		}
		return do(ctx, b)
	}
}

func orText(v any) any {
	if v == nil {
		return ""
	}
	return v
}

func branchOf(words []string) (branch string, err error) {
	for i := 0; i < len(words); i++ {
		name, v, given := strings.Cut(words[i], "=")
		if name != "--branch" && name != "-b" {
			return "", diag.Call.Hint(fmt.Errorf("git.clone has no option %s here", words[i]),
				"it supports --branch; the states git.latest and git.cloned have others as arguments")
		}
		if !given && i+1 < len(words) {
			i++
			v = words[i]
		}
		branch = v
	}
	return branch, nil
}
