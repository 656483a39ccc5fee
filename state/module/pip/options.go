package pip

import (
	"fmt"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/module/client"
)

// options holds arguments that are passed to pip.
type options struct {
	Log                    string `sls:"log"`
	Proxy                  string `sls:"proxy"`
	Timeout                int    `sls:"timeout"` // network timeout in seconds
	FindLinks              any    `sls:"find_links"`
	IndexURL               string `sls:"index_url"`
	ExtraIndexURL          any    `sls:"extra_index_url"`
	NoIndex                bool   `sls:"no_index"`
	Target                 string `sls:"target"`
	ExistsAction           string `sls:"exists_action"`
	NoDeps                 bool   `sls:"no_deps"`
	InstallOptions         any    `sls:"install_options"`
	GlobalOptions          any    `sls:"global_options"`
	PreReleases            bool   `sls:"pre_releases"`
	Cert                   string `sls:"cert"`
	TrustedHost            any    `sls:"trusted_host"`
	NoCacheDir             bool   `sls:"no_cache_dir"`
	CacheDir               string `sls:"cache_dir"`
	NoBinary               any    `sls:"no_binary"`
	ExtraArgs              any    `sls:"extra_args"`
	UseWheel               any    `sls:"use_wheel"`    // no effect: this and the following were removed from pip
	NoUseWheel             any    `sls:"no_use_wheel"` // no effect
	Mirrors                any    `sls:"mirrors"`
	Build                  any    `sls:"build"`
	Download               any    `sls:"download"`
	DownloadCache          any    `sls:"download_cache"`
	Source                 any    `sls:"source"`
	NoInstall              any    `sls:"no_install"`
	NoDownload             any    `sls:"no_download"`
	AllowAllExternal       any    `sls:"allow_all_external"`
	AllowExternal          any    `sls:"allow_external"`
	AllowUnverified        any    `sls:"allow_unverified"`
	ProcessDependencyLinks any    `sls:"process_dependency_links"`
}

// args returns the options for the command line, and the environment for those that may contain a password.
func (o *options) args() (args, env []string) {
	for _, f := range []struct {
		option string
		on     bool
	}{{"--no-index", o.NoIndex}, {"--no-deps", o.NoDeps}, {"--pre", o.PreReleases}, {"--no-cache-dir", o.NoCacheDir}} {
		if f.on {
			args = append(args, f.option)
		}
	}
	timeout := ""
	if o.Timeout > 0 {
		timeout = fmt.Sprint(o.Timeout)
	}
	for _, f := range []struct{ option, v string }{{"--log", o.Log}, {"--timeout", timeout}, {"--target", o.Target},
		{"--exists-action", o.ExistsAction},
		{"--cert", o.Cert}, {"--cache-dir", o.CacheDir}} {
		if f.v != "" {
			args = append(args, f.option, f.v)
		}
	}
	for _, f := range []struct {
		option string
		v      any
	}{{"--install-option", o.InstallOptions}, {"--global-option", o.GlobalOptions}, {"--trusted-host", o.TrustedHost},
		{"--no-binary", o.NoBinary}} {
		for _, v := range client.List(f.v) {
			args = append(args, f.option, v)
		}
	}
	for _, f := range []struct {
		name string
		v    []string
	}{{"PIP_PROXY", client.List(o.Proxy)}, {"PIP_INDEX_URL", client.List(o.IndexURL)},
		{"PIP_EXTRA_INDEX_URL", client.List(o.ExtraIndexURL)}, {"PIP_FIND_LINKS", client.List(o.FindLinks)}} {
		if len(f.v) > 0 {
			env = append(env, f.name+"="+strings.Join(f.v, " "))
		}
	}
	return append(args, client.List(o.ExtraArgs)...), env
}

// files returns the files and directories that pip reads or writes because of the options.
func (o *options) files() []string {
	files := []string{o.Log, o.Target, o.CacheDir, o.Cert, o.IndexURL}
	for _, v := range []any{o.FindLinks, o.ExtraIndexURL, o.ExtraArgs, o.InstallOptions, o.GlobalOptions} {
		files = append(files, client.List(v)...)
	}
	return files
}
