package archive

import (
	"context"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// extracted implements archive.extracted.
type extracted struct {
	Name                string `sls:"name"`
	Source              any    `sls:"source,required"`
	SourceHash          string `sls:"source_hash"`
	SourceHashName      string `sls:"source_hash_name"`
	SourceHashUpdate    bool   `sls:"source_hash_update"`
	SkipFilesListVerify bool   `sls:"skip_files_list_verify"`
	SkipVerify          bool   `sls:"skip_verify"`
	Password            string `sls:"password"`
	Options             string `sls:"options"`
	ListOptions         any    `sls:"list_options"` // no effect: formats are recognized by content
	Force               bool   `sls:"force"`
	Overwrite           bool   `sls:"overwrite"`
	Clean               bool   `sls:"clean"`
	CleanParent         bool   `sls:"clean_parent"`
	User                string `sls:"user"`
	Group               string `sls:"group"`
	IfMissing           string `sls:"if_missing"`
	TrimOutput          any    `sls:"trim_output"`
	UseCmdUnzip         any    `sls:"use_cmd_unzip"` // no effect: no other program is used
	ExtractPerms        bool   `sls:"extract_perms"`
	EnforceToplevel     bool   `sls:"enforce_toplevel"`
	EnforceOwnershipOn  string `sls:"enforce_ownership_on"`
	ArchiveFormat       string `sls:"archive_format"`
	KeepSource          bool   `sls:"keep_source"`
	Keep                *bool  `sls:"keep"` // an alias of keep_source
	UseETag             bool   `sls:"use_etag"`
	Env                 string `sls:"__env__"`
	AllowOutsideLinks   bool   `sls:"allow_outside_links"`
	Preserve            bool   `sls:"preserve"`
	MaxEntries          int    `sls:"max_entries"`
	MaxBytes            int    `sls:"max_bytes"`
	MaxDepth            int    `sls:"max_depth"`
	MaxRatio            int    `sls:"max_ratio"`
	MaxSeconds          int    `sls:"max_seconds"`

	sources  Sources
	dir      string // Name without a trailing slash
	format   string // tar or zip
	options  options
	source   Source
	contents []entry
	dotted   bool  // every name in it begins with ./
	size     int64 // total size in bytes of all files in it
	todo     plan
}

func (x *extracted) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if err := x.prepare(h); err != nil {
		return module.Diff{}, err
	}
	if x.IfMissing != "" && there(h, x.IfMissing) {
		return module.Diff{Comment: x.IfMissing + " is there"}, nil
	}
	if err := x.locate(ctx, h); err != nil {
		return module.Diff{}, err
	}
	if x.SkipFilesListVerify && x.source.Sum != "" && x.recorded(h) == x.source.Sum {
		return module.Diff{Comment: "an archive with this hash was extracted before"}, nil
	}
	fetched := there(h, x.file())
	switch {
	case !fetched && x.source.Path != "":
		err := diag.Download.Hint(fmt.Errorf("the archive %s does not exist", x.source.Shown),
			"correct its source, or require the state that makes it")
		return module.Diff{}, host.WithMissing(err, host.AFile, x.source.Path)
	case !fetched:
		return x.unknown("would fetch %s, and extract what is missing"), nil
	case x.source.Path == "" && x.verify(ctx, h) != nil:
		return x.unknown("would fetch %s again, since the copy in the cache has another hash"), nil
	}
	if who := x.missingAccount(h); who != "" {
		return module.Awaits(who, "extract "+x.source.Shown), nil
	}
	d, err := x.compare(ctx, h)
	return d, x.ofSource(err)
}

// ofSource returns an error for which the content of an archive on the host may be the reason.
func (x *extracted) ofSource(err error) error {
	if err == nil || x.source.Path == "" {
		return err
	}
	return host.Unsuitable(x.source.Path, err)
}

// Rehearse also checks, in a dry run, that an archive that is not cached can be fetched. It reads the response
// of the server, but not the archive.
func (x *extracted) Rehearse(ctx context.Context, h *host.Host) (module.Diff, error) {
	d, err := x.Check(ctx, h)
	if err != nil || !d.Unknown || x.source.Open == nil || len(d.Missing) > 0 {
		return d, err
	}
	body, err := x.source.Open(ctx)
	if err != nil {
		return module.Diff{}, diag.Download.Hint(fmt.Errorf("fetching the archive %s: %w", x.source.Shown, err),
			"correct its source, or see why it cannot be reached")
	}
	return d, body.Close()
}

// locate determines the place and the format of the archive.
func (x *extracted) locate(ctx context.Context, h *host.Host) (err error) {
	to := host.Recipient{Path: x.dir, UID: -1}
	if u, ok, err := h.Accounts.User(x.User); x.User != "" && err == nil && ok {
		to.UID = u.UID
	}
	ctx = host.To(ctx, to)
	x.source, err = x.sources.Archive(ctx,
		Wanted{x.Source, x.SourceHash, x.SourceHashName, x.SkipVerify || x.UseETag, x.Env, x.dir})
	if err != nil || x.format != "" {
		return err
	}
	if x.format = formatOf(x.source.Shown); x.format == "" {
		return diag.Archive.Hint(fmt.Errorf("the name of %s does not show the format of the archive", x.source.Shown),
			"set archive_format to tar or zip")
	}
	return nil
}

func (x *extracted) unknown(format string) module.Diff {
	return module.Diff{Unknown: true, Planned: value.NewMap(), Comment: fmt.Sprintf(format, x.source.Shown)}
}

// missingAccount returns the declared owner that does not exist, such as "user alice", or "".
func (x *extracted) missingAccount(h *host.Host) string {
	if _, ok, err := h.Accounts.User(x.User); x.User != "" && err == nil && !ok {
		return "user " + x.User
	}
	if _, ok, err := h.Accounts.Group(x.Group); x.Group != "" && err == nil && !ok {
		return "group " + x.Group
	}
	return ""
}

// compare lists the archive and determines what to do.
func (x *extracted) compare(ctx context.Context, h *host.Host) (module.Diff, error) {
	var err error
	if x.contents, err = x.list(ctx, h); err != nil {
		return module.Diff{}, fmt.Errorf("reading the archive %s: %w", x.source.Shown, err)
	}
	if err := x.checkTop(); err != nil {
		return module.Diff{}, err
	}
	if x.todo, err = x.plan(h); err != nil {
		return module.Diff{}, err
	}
	if x.todo.extract {
		if err := x.verify(ctx, h); err != nil {
			return module.Diff{}, err
		}
		return module.Diff{Changes: x.changes(), Planned: value.NewMap(),
			Comment: fmt.Sprintf("would extract %s to %s%s", x.source.Shown, x.Name, x.leftOut(h))}, nil
	}
	if x.todo.own {
		return module.Diff{Changes: x.changes(), Comment: "the files are there, and some would get another owner"}, nil
	}
	return module.Diff{Comment: "all files of the archive are there"}, nil
}

// changes returns the changes in Salt's form.
func (x *extracted) changes() *value.Map {
	m := value.NewMap()
	if len(x.todo.removed) > 0 {
		m.Set("removed", value.Strings(x.todo.removed...))
	}
	if x.todo.own {
		m.Set("updated ownership", true)
	}
	if !x.todo.extract {
		return m
	}
	if x.todo.create {
		m.Set("directories_created", value.Strings(x.dir+"/"))
	}
	names := make([]string, 0, len(x.contents))
	for _, e := range x.contents {
		names = append(names, e.raw)
	}
	m.Set("extracted_files", value.Strings(names[:min(len(names), x.options.trim)]...))
	return m
}
