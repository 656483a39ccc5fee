package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"os/exec"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/cloud"
	"github.com/corpus-agent/corpus-agent/artifact/process"
)

// devGuest is a guest of a developer environment in the output of a command.
type devGuest struct {
	Name    string   `json:"name"`
	Host    string   `json:"host"`
	Project string   `json:"project"`
	Image   string   `json:"image"`
	Address string   `json:"address"`
	State   string   `json:"state"` // of its unit: active, inactive ...
	SSH     string   `json:"ssh"`   // the command that logs in
	Mounts  []string `json:"mounts"`
}

// printGuests shows the guests.
func (d *developing) printGuests(ctx context.Context, data *cloud.Cloud) error {
	all := []devGuest{}
	for _, name := range data.On(devNode) {
		g := data.Guests[name]
		one := devGuest{Name: name, Host: data.Hostname(name), Project: g.Project, Image: g.Image, Address: g.Address4,
			State: d.unitState(ctx, unitOf(data, name)), SSH: "ssh root@" + g.Address4, Mounts: []string{}}
		for _, text := range g.Mounts {
			if m, err := cloud.ParseMount(text); err == nil && m != d.storeMount() {
				mode, _, _ := strings.Cut(strings.TrimPrefix(text, m.Source+":"+m.Target+":"), ":")
				one.Mounts = append(one.Mounts, m.Source+":"+m.Target+":"+mode)
			}
		}
		all = append(all, one)
	}
	if d.json {
		return d.JSON(map[string]any{"guests": all})
	}
	w := tabwriter.NewWriter(d.Out, 0, 8, 2, ' ', 0)
	fmt.Fprintln(w, "GUEST\tPROJECT\tIMAGE\tSTATE\tSSH\tMOUNTS")
	for _, g := range all {
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\n", g.Name, g.Project, g.Image, g.State, g.SSH, strings.Join(g.Mounts, " "))
	}
	return w.Flush()
}

// unitOf returns the unit that runs a guest.
func unitOf(data *cloud.Cloud, guest string) string {
	if data.Nodes[devNode].Driver == cloud.LXC {
		return "corpus-lxc@" + guest + ".service"
	}
	return "systemd-nspawn@" + guest + ".service"
}

// unitState returns what systemd says of a unit.
func (d *developing) unitState(ctx context.Context, unit string) string {
	cmd := exec.CommandContext(ctx, "systemctl", "is-active", unit)
	cmd.Env = process.Environ()
	out, _ := cmd.Output() // it ends with an error for each other state than active
	if state := strings.TrimSpace(string(out)); state != "" {
		return state
	}
	return "unknown"
}

// await waits until SSH of all guests answers, and says of which it does not.
func (d *developing) await(ctx context.Context, data *cloud.Cloud, limit time.Duration) {
	end := time.Now().Add(limit)
	for _, name := range data.On(devNode) {
		address := data.Guests[name].Address4
		for limit > 0 && !answersSSH(ctx, address) {
			if ctx.Err() != nil || time.Now().After(end) {
				fmt.Fprintf(d.Err, "warning: SSH of guest %s does not answer at %s; see journalctl -u %s\n", name, address,
					unitOf(data, name))
				break
			}
			time.Sleep(time.Second / 4)
		}
	}
}

// answersSSH reports whether a server of SSH answers at an address.
func answersSSH(ctx context.Context, address string) bool {
	const patience = 2 * time.Second
	conn, err := (&net.Dialer{Timeout: patience}).DialContext(ctx, "tcp", net.JoinHostPort(address, "22"))
	if err != nil {
		return false
	}
	defer conn.Close()
	first := make([]byte, len("SSH-"))
	if conn.SetDeadline(time.Now().Add(patience)) != nil {
		return false
	}
	_, err = io.ReadFull(conn, first)
	return err == nil && string(first) == "SSH-"
}
