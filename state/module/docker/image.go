package docker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
	"github.com/corpus-agent/corpus-agent/state/value"
)

// imagePresent implements docker_image.present: it pulls, builds or loads an image.
type imagePresent struct {
	Name             string `sls:"name"`
	Tag              string `sls:"tag"`
	Build            string `sls:"build"` // the directory to build from
	Dockerfile       string `sls:"dockerfile"`
	Load             string `sls:"load"`  // the file to load from
	Force            bool   `sls:"force"` // get the image in every run
	InsecureRegistry any    `sls:"insecure_registry"`
	ClientTimeout    any    `sls:"client_timeout"`
	SLS              any    `sls:"sls"`
}

// reference returns the name of an image with its tag.
func reference(name, tag string) string {
	if tag != "" {
		return name + ":" + tag
	}
	if strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ":") || strings.Contains(name, "@") {
		return name
	}
	return name + ":latest"
}

func (i *imagePresent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if i.SLS != nil {
		return module.Diff{}, diag.Argument.Hint(errors.New("images are not built from SLS files here"),
			"build it from a Dockerfile (build)")
	}
	if i.Build != "" && i.Load != "" {
		return module.Diff{}, diag.Contradiction.Hint(errors.New("both build and load are set"), "keep one of them")
	}
	ref := reference(i.Name, i.Tag)
	if d, ok, err := ready(h, "get the image "+ref); !ok || err != nil {
		return d, err
	}
	there, err := inspect(ctx, h, "image", ref, &struct{}{})
	if err != nil {
		return unanswered(err, "get the image "+ref)
	}
	if there && !i.Force {
		return module.Diff{Comment: "the image " + ref + " is there"}, nil
	}
	d := module.Diff{Changes: i.changes(ref), Comment: "would get the image " + ref}
	if i.Force && there { // the new image may equal the old one
		d = module.Diff{Unknown: true, Planned: value.NewMap(), Comment: d.Comment}
	}
	return d, nil
}

func (i *imagePresent) changes(ref string) *value.Map {
	status := "pulled"
	switch {
	case i.Build != "":
		status = "built"
	case i.Load != "":
		status = "loaded"
	}
	return value.NewMap("Image", ref, "Status", status)
}

func (i *imagePresent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	ref := reference(i.Name, i.Tag)
	if there, err := docker().Ready(h); err != nil || !there {
		return module.Report{}, errors.Join(err, docker().Missing())
	}
	var before, after struct {
		ID string `json:"Id"`
	}
	if _, err := inspect(ctx, h, "image", ref, &before); err != nil {
		return module.Report{}, err
	}
	args := []string{"pull", "--quiet", ref}
	switch {
	case i.Build != "":
		args = []string{"build", "--quiet", "--tag", ref}
		if i.Dockerfile != "" {
			args = append(args, "--file", i.Build+"/"+i.Dockerfile)
		}
		args = append(args, i.Build)
	case i.Load != "":
		args = []string{"load", "--quiet", "--input", i.Load}
	}
	if err := i.checkTrusted(ctx, h); err != nil {
		return module.Report{}, err
	}
	if err := do(ctx, h, args...); err != nil {
		return module.Report{}, diag.Container.Hint(err, "check the name of the image, and who may pull it (docker login)")
	}
	there, err := inspect(ctx, h, "image", ref, &after)
	if err != nil || !there {
		return module.Report{}, errors.Join(err, fmt.Errorf("there is still no image %s", ref))
	}
	if before.ID == after.ID {
		return module.Report{Changes: value.NewMap(), Comment: "the image " + ref + " is the same as before"}, nil
	}
	return module.Report{Changes: i.changes(ref), Comment: "got the image " + ref}, nil
}

// checkTrusted returns an error if an unprivileged user can change the file of the host that determines the content of
// the image: the Docker daemon executes a Dockerfile as root.
func (i *imagePresent) checkTrusted(ctx context.Context, h *host.Host) error {
	from := i.Load
	if i.Build != "" {
		from = path.Join(i.Build, cmp.Or(i.Dockerfile, "Dockerfile"))
	}
	if !path.IsAbs(from) {
		return nil
	}
	return h.Received(host.To(ctx, host.Recipient{What: "the image " + reference(i.Name, i.Tag)}), from)
}

// imageAbsent implements docker_image.absent.
type imageAbsent struct {
	Name   string `sls:"name"`
	Images any    `sls:"images"`
	Force  bool   `sls:"force"`
}

func (i *imageAbsent) Check(ctx context.Context, h *host.Host) (module.Diff, error) {
	if d, ok, err := ready(h, "remove images"); !ok || err != nil {
		return d, err
	}
	names := []string{i.Name}
	if i.Images != nil {
		names = list(i.Images)
	}
	gone, err := present(ctx, h, names)
	if err != nil {
		return unanswered(err, "remove images")
	}
	if len(gone) == 0 {
		return module.Diff{Comment: "there is no image " + strings.Join(names, ", ")}, nil
	}
	return module.Diff{Changes: value.NewMap("removed", value.Strings(gone...)),
		Comment: "would remove " + strings.Join(gone, ", ")}, nil
}

// present returns the references of those images that the host has.
func present(ctx context.Context, h *host.Host, names []string) (refs []string, err error) {
	for _, name := range names {
		ref := reference(name, "")
		there, err := inspect(ctx, h, "image", ref, &struct{}{})
		if err != nil {
			return nil, err
		}
		if there {
			refs = append(refs, ref)
		}
	}
	return refs, nil
}

func (i *imageAbsent) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	d, err := again(ctx, h, d, i.Check)
	if err != nil || d.Empty() {
		return module.Report{Comment: d.Comment}, err
	}
	args := []string{"image", "rm"}
	if i.Force {
		args = append(args, "--force")
	}
	for _, v := range d.Changes.Value("removed").(*value.List).Items {
		args = append(args, value.Str(v))
	}
	if err := do(ctx, h, args...); err != nil {
		return module.Report{}, diag.Container.Hint(err, "remove the containers that use it first, or set force: True")
	}
	return module.Report{Changes: d.Changes, Comment: "removed images"}, nil
}
