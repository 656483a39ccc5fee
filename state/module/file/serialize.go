package file

import (
	"context"
	"errors"
	"fmt"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// serialize implements file.serialize: it writes data to a file in one of several formats.
type serialize struct {
	ownership
	encoded
	unsupported
	Name             string      `sls:"name"`
	Dataset          any         `sls:"dataset"`
	DatasetPillar    string      `sls:"dataset_pillar"`
	Mode             module.Mode `sls:"mode"`
	Backup           string      `sls:"backup"`
	MakeDirs         bool        `sls:"makedirs"`
	DirMode          module.Mode `sls:"dir_mode"`
	ShowChanges      bool        `sls:"show_changes"`
	Create           bool        `sls:"create"`
	MergeIfExists    bool        `sls:"merge_if_exists"`
	Formatter        string      `sls:"formatter"`
	Serializer       string      `sls:"serializer"`
	SerializerOpts   any         `sls:"serializer_opts"`
	DeserializerOpts any         `sls:"deserializer_opts"`

	family *family
	job    job
}

func (s *serialize) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	d := module.Diff{Warnings: append(s.unsupported.warnings(), backupWarning(s.Backup)...)}
	name, err := absolute(h, "name", s.Name)
	if err != nil {
		return d, err
	}
	s.Name = name
	if err := s.ownership.mayDeclare(h, s.Mode, name); err != nil {
		return d, err
	}
	data, err := s.data()
	if err != nil {
		return d, err
	}
	format, err := formatOf(s.Formatter, s.Serializer)
	if err == nil {
		err = s.mergeable(format, data)
	}
	if err != nil {
		return d, err
	}
	if !s.Create && !isFile(h, name) {
		d.Comment = name + " does not exist, and is not to be created"
		return d, nil
	}
	old, merged, err := s.merge(h, format, data)
	if err != nil {
		return d, err
	}
	if merged != nil && value.Equal(old, merged) {
		d.Comment = name + " is as it should be"
		return d, nil
	}
	if merged != nil {
		data = merged
	}
	if err := s.prepare(h, format, data); err != nil {
		if merged != nil && s.writable(format) {
			err = host.Unsuitable(name, err)
		}
		return d, err
	}
	d, err = s.job.check(ctx, h, d)
	if s.job.there && merged != nil && d.Changes.Has("diff") {
		s.describe(h, d.Changes, old, merged)
	}
	return d, err
}

// data returns the dataset from the argument or the pillar.
func (s *serialize) data() (any, error) {
	switch {
	case value.Truth(s.Dataset) && s.DatasetPillar != "":
		return nil, diag.Contradiction.Hint(errors.New("both dataset and dataset_pillar are given"), "keep one of them")
	case s.DatasetPillar != "":
		return lookUp(s.family.Pillar, "pillar key", s.DatasetPillar, ":")
	case s.Dataset == nil:
		return nil, diag.Argument.Hint(errors.New("there is no data"), "give dataset or dataset_pillar")
	}
	return s.Dataset, nil
}

// mergeable returns an error for arguments with which nothing can be merged, regardless of whether the file exists:
// a user could remove it, and so decide whether the release fails.
func (s *serialize) mergeable(f format, data any) error {
	_, mapping := data.(*value.Map)
	switch {
	case !s.MergeIfExists:
	case f.load == nil:
		return diag.Argument.Hint(fmt.Errorf("merge_if_exists cannot read %s", f.name),
			"use another format than python")
	case !mapping:
		return diag.Edit.Hint(fmt.Errorf("merge_if_exists cannot merge a %s", value.TypeName(data)),
			"give a mapping, or leave merge_if_exists out")
	}
	return nil
}

// merge merges the data into the content of the file. merged is nil if there is nothing to merge with.
func (s *serialize) merge(h *host.Host, f format, data any) (old, merged *value.Map, err error) {
	if !s.MergeIfExists || !isFile(h, s.Name) {
		return nil, nil, nil
	}
	text, err := h.Files.ReadFile(s.Name)
	if err != nil {
		return nil, nil, err
	}
	v, err := f.load(text, repack(s.DeserializerOpts))
	if err != nil {
		return nil, nil, host.Unsuitable(s.Name, fmt.Errorf("reading %s as %s: %w", s.Name, f.name, err))
	}
	if v == nil {
		return nil, nil, nil
	}
	old, is := v.(*value.Map)
	if !is {
		err := fmt.Errorf("a %s and a mapping cannot be merged", value.TypeName(v))
		return nil, nil, host.Unsuitable(s.Name, diag.Edit.Hint(err, "make %s a mapping", s.Name))
	}
	over, _ := data.(*value.Map) // see mergeable
	if merged, err = value.Merge(old, over, value.Recurse, false); err != nil {
		err = host.Unsuitable(s.Name, err)
	}
	return old, merged, err
}

// writable reports whether the format can represent the data of the state, without those of the file.
func (s *serialize) writable(f format) bool {
	data, err := s.data()
	if err == nil {
		_, err = f.dump(data, dumpOptions{repack(s.SerializerOpts), s.Encoding != ""})
	}
	return err == nil
}

// prepare serializes the data and sets up the job that writes it.
func (s *serialize) prepare(h *host.Host, f format, data any) error {
	options := repack(s.SerializerOpts)
	out, err := f.dump(data, dumpOptions{options, s.Encoding != ""})
	if err != nil {
		return fmt.Errorf("writing %s: %w", f.name, err)
	}
	if f.binary {
		return s.settle(h, []byte(out))
	}
	content, err := s.encoded.bytes([]byte(out + "\n"))
	if err != nil {
		return err
	}
	return s.settle(h, content)
}

// settle sets up the job that writes content.
func (s *serialize) settle(h *host.Host, content []byte) (err error) {
	s.job = job{family: s.family, name: s.Name, content: text(content), show: s.ShowChanges,
		makeDirs: s.MakeDirs, dirMode: s.DirMode,
		backup: s.Backup, follow: true}
	s.job.perms.mode = s.Mode
	if s.job.perms.owner, err = s.ownership.resolve(h); err != nil {
		return err
	}
	return s.job.look(h)
}

// describe replaces the line difference of a merge by a difference of keys.
func (s *serialize) describe(h *host.Host, changes, old, merged *value.Map) {
	diff := dataDiff(old, merged)
	switch {
	case !s.ShowChanges, s.job.readers(h).private(): // the job has described it
	case s.family.seen(value.Repr(diff)) == secretDiff:
		changes.Set("diff", secretDiff)
	default:
		changes.Set("diff", diff)
	}
}

// dataDiff returns the old and new values of the keys in which two mappings differ, at any depth.
func dataDiff(old, new *value.Map) *value.Map {
	const nothing = "<_null_>"
	diff := value.NewMap()
	for key, v := range new.All() {
		was, there, _ := old.GetKey(key)
		if there && value.Equal(was, v) {
			continue
		}
		found := value.NewMap("new", v, "old", was)
		if !there {
			found.Set("old", nothing)
		}
		wasMap, ok1 := was.(*value.Map)
		isMap, ok2 := v.(*value.Map)
		if ok1 && ok2 {
			found = dataDiff(wasMap, isMap)
		}
		_ = diff.SetKey(key, found)
	}
	for key, was := range old.All() {
		if _, there, _ := new.GetKey(key); !there {
			_ = diff.SetKey(key, value.NewMap("new", nothing, "old", was))
		}
	}
	return diff
}

// repack converts a list of mappings to a single mapping.
func repack(v any) *value.Map {
	all := value.NewMap()
	switch v := v.(type) {
	case *value.Map:
		all.Update(v)
	case *value.List:
		for _, item := range v.Items {
			if m, ok := item.(*value.Map); ok {
				all.Update(m)
			}
		}
	}
	return all
}

func (s *serialize) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	return s.job.apply(ctx, h, d)
}
