package archive

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"strings"

	"github.com/corpus-agent/corpus-agent/state/host"
	"github.com/corpus-agent/corpus-agent/state/module"
)

func (x *extracted) Apply(ctx context.Context, h *host.Host, d module.Diff) (module.Report, error) {
	if x.source.Path != "" { // the archive may have been created since Check
		if err := x.locate(ctx, h); err != nil {
			return module.Report{}, err
		}
	}
	if d.Unknown {
		if _, _, err := x.owner(h); err != nil {
			return module.Report{}, err
		}
		if x.source.Path == "" && (!there(h, x.source.Cache) || x.verify(ctx, h) != nil) {
			if err := x.fetch(ctx, h); err != nil {
				return module.Report{}, err
			}
		}
		var err error
		if d, err = x.compare(ctx, h); err != nil {
			return module.Report{}, err
		}
	}
	report := module.Report{Changes: d.Changes, Comment: "all files of the archive are there"}
	if x.todo.extract {
		if err := x.extract(ctx, h); err != nil {
			return module.Report{}, x.ofSource(fmt.Errorf("extracting %s: %w", x.source.Shown, err))
		}
		report.Comment = fmt.Sprintf("extracted %s to %s%s", x.source.Shown, x.Name, x.leftOut(h))
	}
	if x.todo.own {
		if err := x.own(h); err != nil {
			return report, err
		}
	}
	return report, errors.Join(x.record(h), x.forget(h))
}

// file returns the path of the archive on the host.
func (x *extracted) file() string {
	if x.source.Path != "" {
		return x.source.Path
	}
	return x.source.Cache
}

// fetch fetches the archive into the cache. An archive with the wrong hash is not kept.
func (x *extracted) fetch(ctx context.Context, h *host.Host) error {
	body, err := x.source.Open(ctx)
	if err != nil {
		return err
	}
	defer body.Close()
	largest := x.limits().bytes
	if err := makeDirs(h, path.Dir(x.source.Cache), 0o700, -1); err != nil {
		return err
	}
	mode := fs.FileMode(0o600)
	if err := h.Files.Write(x.source.Cache,
		host.NewFile{Content: &atMost{Reader: body, left: largest}, Mode: &mode, UID: -1, GID: -1}); err != nil {
		return fmt.Errorf("fetching %s: %w", x.source.Shown, err)
	}
	return nil
}

// forget removes a fetched archive from the cache, unless keep_source is set.
func (x *extracted) forget(h *host.Host) error {
	if keep := x.KeepSource && (x.Keep == nil || *x.Keep); keep || x.source.Path != "" {
		return nil
	}
	return h.Files.Remove(x.source.Cache)
}

// verify returns an error if the archive does not have the expected hash. It reads the whole archive.
func (x *extracted) verify(ctx context.Context, h *host.Host) error {
	if x.source.Sum == "" {
		return nil
	}
	f, err := h.Files.Open(x.file())
	if err != nil {
		return err
	}
	defer f.Close()
	_, err = io.Copy(io.Discard, x.source.Verified(host.Bounded(ctx, f)))
	return err
}

// marker returns the path of the file with the hash of the archive that was extracted last.
func (x *extracted) marker() string {
	name := strings.NewReplacer("/", "_", ":", "_").Replace(strings.Trim(x.dir, "/") + "." + path.Base(x.source.Shown))
	return path.Join(x.source.Notes, "extracted", name+".hash")
}

// recorded returns the hash of the archive that was extracted last, or "".
func (x *extracted) recorded(h *host.Host) string {
	data, err := h.Files.ReadFile(x.marker())
	if err != nil {
		return ""
	}
	return strings.TrimSpace(string(data))
}

// record stores the hash for the next run if the arguments need it.
func (x *extracted) record(h *host.Host) error {
	if x.source.Sum == "" || !x.SourceHashUpdate && !x.SkipFilesListVerify || x.recorded(h) == x.source.Sum {
		return nil
	}
	if err := makeDirs(h, path.Dir(x.marker()), 0o700, -1); err != nil {
		return err
	}
	return h.Files.Write(x.marker(), host.NewFile{Content: strings.NewReader(x.source.Sum + "\n"), UID: -1, GID: -1})
}
