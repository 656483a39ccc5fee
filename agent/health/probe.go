package health

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptrace"
	"net/url"
	"os/exec"
	"path/filepath"
	"strings"

	"github.com/corpus-agent/corpus-agent/agent/hook"
	"github.com/corpus-agent/corpus-agent/agent/service"
	"github.com/corpus-agent/corpus-agent/artifact/recipe"
)

// mostBody bounds the bytes of a response that are searched for a text.
const mostBody = 64 << 10

// askHTTP opens a new connection for each try: on a connection that is kept alive, the old process would answer.
func askHTTP(ctx context.Context, p recipe.Probe, seen *connection) error {
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{GotConn: func(i httptrace.GotConnInfo) {
		seen.note(i.Conn)
	}})
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, p.Target, nil)
	if err != nil {
		return err
	}
	req.Header.Set("User-Agent", "corpus-agent")
	client := http.Client{
		Transport:     &http.Transport{DisableKeepAlives: true},
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	resp, err := client.Do(req)
	if err != nil {
		return withoutURL(err)
	}
	defer resp.Body.Close()
	if resp.StatusCode < p.Status[0] || resp.StatusCode > p.Status[1] {
		return fmt.Errorf("status %d, and %d to %d is healthy", resp.StatusCode, p.Status[0], p.Status[1])
	}
	if p.Contains == "" {
		return nil
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, mostBody))
	if err == nil && !bytes.Contains(body, []byte(p.Contains)) {
		err = fmt.Errorf("the answer does not contain %q", p.Contains)
	}
	return err
}

// withoutURL removes the URL from an error, since the probe's name has it.
func withoutURL(err error) error {
	var u *url.Error
	if errors.As(err, &u) {
		return u.Err
	}
	return err
}

func askTCP(ctx context.Context, p recipe.Probe, seen *connection) error {
	c, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.Target)
	if err != nil {
		return err
	}
	seen.note(c)
	return c.Close()
}

// connection determines the process at the other end of a connection of a probe while it is open, since the process may
// have ended after its response.
type connection struct {
	at       func(service.Connection) (string, error) // nil if the process is not checked
	answered string                                   // the process
	err      error                                    // why its answer does not count
}

func (c *connection) note(conn net.Conn) {
	from, ok := conn.LocalAddr().(*net.TCPAddr)
	to, too := conn.RemoteAddr().(*net.TCPAddr)
	if !ok || !too || c.at == nil {
		return
	}
	if ends := (service.Connection{From: from.AddrPort(), To: to.AddrPort()}); local(ends) {
		c.answered, c.err = c.at(ends)
	}
}

// local reports whether a connection stays on this host.
func local(c service.Connection) bool {
	return c.To.IsValid() && (c.To.Addr().IsLoopback() || c.From.Addr().Unmap() == c.To.Addr().Unmap())
}

// askUnit queries systemd for the state of a unit. A unit that waits for its next restart has failed.
func askUnit(ctx context.Context, p recipe.Probe) error {
	cmd := exec.CommandContext(ctx, "systemctl", "show", "--property=LoadState,ActiveState,SubState", "--", p.Target)
	out, err := cmd.Output()
	if err != nil {
		return fmt.Errorf("querying systemd: %w", err)
	}
	said := service.Properties(string(out))
	switch {
	case said["LoadState"] == "not-found":
		return errors.New("there is no such unit")
	case said["ActiveState"] != "active" && said["ActiveState"] != "reloading":
		return fmt.Errorf("it is %s (%s)", said["ActiveState"], said["SubState"])
	}
	return nil
}

// askScript runs a script in the way hooks are run.
func askScript(ctx context.Context, p recipe.Probe, o Options) error {
	path := p.Target
	if !filepath.IsAbs(path) {
		path = filepath.Join(o.Dir, path)
	}
	result, err := hook.Program(ctx, path, hook.Options{Env: o.Env, Dir: o.Dir, Timeout: o.Timeout, Args: p.Args,
		Output: 4 << 10, Check: o.Check})
	if err != nil && result.Output != "" {
		return fmt.Errorf("%w: %s", err, lastLine(result.Output))
	}
	return err
}

func lastLine(s string) string { return s[strings.LastIndexByte(s, '\n')+1:] }
