// Package virt implements virt.keys, which installs the certificates and keys of libvirt.
//
// They come from the pillar, under names such as libvirt.serverkey.pem. Salt's master can generate them. Here the
// author of the pillar has to generate them, since a host cannot sign certificates for other hosts.
package virt

import (
	"context"
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// Pillar returns the value at a path.
type Pillar func(path, delimiter string) (any, bool)

// Functions returns the functions of virt.
func Functions(pillar Pillar) module.Table {
	return module.Table{"keys": func() module.Resource { return &keys{BasePath: "/etc/pki", pillar: pillar} }}
}

// keys implements virt.keys.
type keys struct {
	Name           string `sls:"name"`
	BasePath       string `sls:"basepath"`
	Country        any    `sls:"country"` // no effect: this and the next four are for the generation of certificates
	State          any    `sls:"st"`
	Locality       any    `sls:"locality"`
	Organization   any    `sls:"organization"`
	ExpirationDays any    `sls:"expiration_days"`

	pillar Pillar
	files  []file
}

// file is a file with its declared content.
type file struct {
	path, text string
	mode       fs.FileMode
}

func (k *keys) Check(_ context.Context, h *host.Host) (module.Diff, error) {
	changes, found := value.NewMap(), false
	for _, f := range []struct {
		name, path string
		mode       fs.FileMode
	}{
		{"serverkey", "libvirt/private/serverkey.pem", 0o600}, {"servercert", "libvirt/servercert.pem", 0o644},
		{"clientkey", "libvirt/private/clientkey.pem", 0o600}, {"clientcert", "libvirt/clientcert.pem", 0o644},
		{"cacert", "CA/cacert.pem", 0o644},
	} {
		v, ok := k.pillar("libvirt."+f.name+".pem", "\x00")
		if !ok || v == nil {
			continue
		}
		found = true
		wanted := file{path.Join(k.BasePath, f.path), value.Str(v), f.mode}
		have, err := h.Files.ReadFile(wanted.path)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			changes.Set(f.name, "new")
		case err != nil:
			return module.Diff{}, err
		case string(have) != wanted.text:
			changes.Set(f.name, "update")
		default:
			continue
		}
		k.files = append(k.files, wanted)
	}
	d := module.Diff{Comment: "the keys are as in the pillar"}
	if !found {
		d.Warnings = []string{"the pillar has none of the keys, such as libvirt.serverkey.pem, so there is nothing to write"}
	}
	if changes.Len() > 0 {
		d.Changes, d.Planned, d.Comment = changes, value.NewMap(), "would be written: "+strings.Join(changes.Names(), ", ")
	}
	return d, nil
}

func (k *keys) Apply(_ context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	for _, f := range k.files {
		if err := h.MkdirAll(path.Dir(f.path)); err != nil {
			return module.Report{}, err
		}
		if err := h.Files.Write(f.path,
			host.NewFile{Content: strings.NewReader(f.text), Mode: &f.mode, UID: -1, GID: -1}); err != nil {
			return module.Report{}, err
		}
	}
	return module.Report{Changes: d.Changes, Comment: "the keys were written"}, nil
}
