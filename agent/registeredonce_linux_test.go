package agent_test

import (
	"encoding/binary"
	"errors"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/corpus-agent/corpus-agent/agent/exit"
)

// TestRegistrationIsReadOnceInARun checks that a run reads the file with the registration of the host's key once:
// another process may replace it between two reads.
func TestRegistrationIsReadOnceInARun(t *testing.T) {
	l := newLab(t)
	l.Config.UploadReports, l.Config.Heartbeat = true, time.Hour
	l.publish("1")
	l.expect(exit.OK)
	events, err := unix.InotifyInit1(unix.IN_NONBLOCK | unix.IN_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = unix.Close(events) }()
	if _, err := unix.InotifyAddWatch(events, l.Layout.HostRegistered(), unix.IN_OPEN); err != nil {
		t.Fatal(err)
	}
	for _, version := range []string{"", "2"} { // a run with nothing new, and one that uploads a report
		if version != "" {
			l.publish(version)
		}
		l.expect(exit.OK)
		if got := opened(t, events); got != 1 {
			t.Errorf("with version %q the file was opened %d times, want once", version, got)
		}
	}
}

// opened returns the number of events of an inotify descriptor since the last call.
func opened(t *testing.T, events int) (n int) {
	t.Helper()
	buf := make([]byte, 4096)
	size, err := unix.Read(events, buf)
	if errors.Is(err, unix.EAGAIN) {
		return 0
	}
	if err != nil {
		t.Fatal(err)
	}
	for at := 0; at < size; n++ {
		at += unix.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(buf[at+12:]))
	}
	return n
}
