package pkgrepo

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/redact"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// managed implements pkgrepo.managed: it sets up a repository and its signing key.
type managed struct {
	keyed
	Name        string `sls:"name"`
	PPA         string `sls:"ppa"`
	File        string `sls:"file"`
	Dist        string `sls:"dist"`
	Comps       any    `sls:"comps"`         // a list, or text with commas
	Archs       any    `sls:"architectures"` // a list, or text with commas
	SignedBy    string `sls:"signedby"`
	Disabled    *bool  `sls:"disabled"`
	Enabled     *bool  `sls:"enabled"`
	Comments    any    `sls:"comments"`
	CleanFile   bool   `sls:"clean_file"`
	Consolidate bool   `sls:"consolidate"`
	Refresh     *bool  `sls:"refresh"`    // for zypper: refresh the index automatically
	RefreshDB   *bool  `sls:"refresh_db"` // an alias of refresh
	HumanName   any    `sls:"humanname"`  // for package managers with descriptive names
	GPGCheck    any    `sls:"gpgcheck"`   // for package managers with this setting
	SLSEnv      string `sls:"__env__"`
	// More holds settings under the names they have in the files of other package managers, such as baseurl and
	// gpgkey.
	More *value.Map `sls:"*"`

	sources Sources
}

// repositoryJob holds what pkgrepo.managed has to do for apt.
type repositoryJob struct {
	lists   *lists
	want    entry
	old     *entry // nil for a new one
	differs bool
	key     bool // the key is missing
}

func (r *managed) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	if edit, err := editorFor(h, r.editRPM, r.editPacman, r.editAPK); edit != nil || err != nil {
		if err != nil {
			return module.Diff{}, err
		}
		return checkEdit(h, edit, r.Name, "the repository is as it should be", "would set up %s in %s")
	}
	j, err := r.job(h)
	if err != nil {
		return module.Diff{}, err
	}
	d := module.Diff{Comment: "the repository is as it should be"}
	if j.differs || j.key {
		d = module.Diff{Changes: r.changes(j), Comment: "would set up " + redact.URLs(j.want.String())}
	}
	d.Warnings = r.foreign()
	return d, nil
}

// Rehearse also checks, in a dry run, that the key can be fetched and that the server has the repository.
func (r *managed) Rehearse(ctx context.Context, h *host.Host) (module.Diff, error) {
	d, err := r.Check(ctx, h)
	if err != nil || d.Empty() {
		return d, err
	}
	if edit, err := editorFor(h, r.editRPM, r.editPacman, r.editAPK); edit != nil || err != nil {
		return d, errors.Join(err, r.keyThere(ctx, r.sources, r.SLSEnv))
	}
	j, err := r.job(h)
	if err != nil {
		return d, err
	}
	if j.key {
		err = r.keyThere(ctx, r.sources, r.SLSEnv)
	}
	return d, errors.Join(err, r.released(ctx, j.want))
}

// released returns an error if the server reports that a repository has no index. Other failures are ignored.
func (r *managed) released(ctx context.Context, e entry) error {
	if e.disabled || !strings.HasPrefix(e.uri, "http") {
		return nil
	}
	dir := strings.TrimRight(e.uri, "/") + "/dists/" + strings.Trim(e.suite, "/") + "/"
	if flat, ok := strings.CutSuffix(e.suite, "/"); ok {
		dir = strings.TrimRight(e.uri, "/") + "/" + strings.TrimPrefix(flat+"/", "./")
	}
	for _, name := range []string{"InRelease", "Release"} {
		body, err := r.sources.Open(ctx, dir+name, r.SLSEnv)
		if err == nil {
			return body.Close()
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
	}
	return noRelease(dir)
}

func noRelease(dir string) error {
	return diag.Repository.Hint(fmt.Errorf("the server has no repository at %s: neither InRelease nor Release is there",
		redact.URLs(dir)),
		"check the URI and the name of the distribution")
}

// foreign returns warnings about arguments that do not apply to apt.
func (r *managed) foreign() []string {
	var warnings []string
	for k := range r.More.All() {
		warnings = append(warnings, fmt.Sprintf("pkgrepo.managed has no argument %s where apt is", value.Str(k)))
	}
	return warnings
}

func (r *managed) job(h *host.Host) (j repositoryJob, err error) {
	if err := errors.Join(r.consistent(), r.contradicts()); err != nil {
		return j, err
	}
	if j.want, err = r.want(h); err != nil {
		return j, err
	}
	if j.lists, err = readLists(h); err != nil {
		return j, err
	}
	f, at, found, foreign := j.lists.find(j.want)
	switch {
	case foreign:
		j.old = &f.foreign[at]
	case found:
		old := *f.lines[at].entry // a copy, since the entry in the file changes
		j.old = &old
	}
	if j.old != nil && r.Comments == nil {
		j.want.comment = j.old.comment
	}
	j.differs = j.old == nil || !j.want.equal(*j.old)
	if j.differs && foreign {
		return j, diag.Repository.Hint(fmt.Errorf("the repository is in %s, in another way than asked for", f.path),
			"that format is read but not written; manage the file with file.managed")
	}
	j.key, err = r.missing(h, j.want)
	return j, err
}

func (r *managed) contradicts() error {
	if r.Enabled != nil && r.Disabled != nil {
		return diag.Repository.Hint(errors.New("both enabled and disabled are given"), "keep one of them")
	}
	return nil
}

// want returns the declared entry.
func (r *managed) want(h *host.Host) (entry, error) {
	name := r.Name
	if ppa, ok := r.ppa(); ok {
		text, err := ppaLine(h, ppa)
		if err != nil {
			return entry{}, err
		}
		name = text
	}
	e, err := readEntry(name)
	if err != nil {
		return e, err
	}
	if r.Dist != "" {
		e.suite = r.Dist
	}
	if comps := words(r.Comps); len(comps) > 0 {
		e.comps = comps
	}
	for option, v := range map[string]string{"arch": strings.Join(words(r.Archs), ","), "signed-by": r.SignedBy} {
		if v == "" {
			v = e.option(option)
		}
		e.setOption(option, v)
	}
	if r.Disabled != nil {
		e.disabled = *r.Disabled
	}
	if r.Enabled != nil {
		e.disabled = !*r.Enabled
	}
	if list := words(r.Comments); len(list) > 0 {
		e.comment = strings.Join(list, " ")
	}
	return e, nil
}

// words parses a list, or text with commas.
func words(v any) []string {
	var list []string
	switch v := v.(type) {
	case string:
		for word := range strings.SplitSeq(v, ",") {
			if word = strings.TrimSpace(word); word != "" {
				list = append(list, word)
			}
		}
	case *value.List:
		for _, item := range v.Items {
			list = append(list, strings.TrimSpace(value.Str(item)))
		}
	}
	return list
}

func (r *managed) ppa() (string, bool) {
	if r.PPA != "" {
		return strings.TrimPrefix(r.PPA, "ppa:"), true
	}
	return strings.CutPrefix(r.Name, "ppa:")
}

// ppaLine returns the entry of a personal package archive. These exist only for Ubuntu.
func ppaLine(h *host.Host, ppa string) (string, error) {
	data, _ := h.Files.ReadFile("/etc/os-release") // without the file, the host is not Ubuntu
	release := map[string]string{}
	for line := range strings.SplitSeq(string(data), "\n") {
		key, v, _ := strings.Cut(line, "=")
		release[key] = strings.Trim(v, `"'`)
	}
	codename := release["UBUNTU_CODENAME"]
	if codename == "" {
		return "", diag.Repository.Hint(fmt.Errorf("ppa:%s is an archive for Ubuntu, and this is %s", ppa,
			release["PRETTY_NAME"]), "give the repository as a deb line")
	}
	if !regexp.MustCompile(`^[a-z0-9][a-z0-9.+-]*/[a-z0-9][a-z0-9.+-]*$`).MatchString(ppa) {
		return "", diag.Repository.Hint(fmt.Errorf("%q is not a personal archive", ppa), "write owner/archive")
	}
	return fmt.Sprintf("deb http://ppa.launchpad.net/%s/ubuntu %s main", ppa, codename), nil
}
