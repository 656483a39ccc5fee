package delivery

import (
	"context"
	"errors"
	"io/fs"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/agent/hostrecord"
	"github.com/corpus-agent/corpus-agent/agent/report"
	"github.com/corpus-agent/corpus-agent/agent/site"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/state/diag"
	"github.com/corpus-agent/corpus-agent/state/redact"
)

// orFailure writes the failure object of the host if its record could not be written because of its own disk. It
// returns what is to be noted.
func (r *Run) orFailure(ctx context.Context, w hostrecord.Writer, out *report.Report, cause error) error {
	if cause == nil || r.Site.Unwritable() == nil && !errors.Is(cause, hostrecord.ErrUnkept) {
		return cause
	}
	detail := detailOf(cause)
	if out.Error != "" {
		detail.Error += "; the run ended with: " + out.Error
	}
	failed := w.WriteFailure(store.LockWait(ctx, LockWait), r.Identity.Service, r.Report.Host, detail)
	return errors.Join(site.ExplainDisk(cause), failed)
}

func detailOf(err error) hostrecord.Detail {
	err = site.ExplainDisk(err)
	return hostrecord.Detail{Error: err.Error(), Hint: strings.Join(diag.AllHints(err), "\n")}
}

// Unbegun writes to the store that a run of this host could not begin, because of cause, whose text has no secrets. The
// project and the name of the host are those of its newest record: a host without one writes nothing. It reads the
// state directory of the host, and writes to none of its files.
func Unbegun(ctx context.Context, s *site.Site, open func(url string) (store.Store, error), cause error) error {
	project, host, url := hostrecord.Last(s.Layout.HostRecord())
	if s.Config.Store != "" {
		url = s.Config.Store
	}
	if project == "" || url == "" {
		return nil
	}
	key, err := hostkey.Read(s.Layout.HostKey())
	if errors.Is(err, fs.ErrPermission) {
		return nil // only root speaks for the host
	}
	if err != nil {
		return err
	}
	opened, err := open(url)
	if err != nil {
		return err
	}
	w := hostrecord.Writer{Store: opened, URL: redact.URLs(url), Key: key, File: s.Layout.HostRecord(), Now: s.Time()}
	return w.WriteFailure(store.LockWait(ctx, LockWait), project, host, detailOf(cause))
}
