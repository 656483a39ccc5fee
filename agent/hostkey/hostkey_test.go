package hostkey_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/corpus-agent/corpus-agent/agent/hostkey"
	"github.com/corpus-agent/corpus-agent/artifact/store"
	"github.com/corpus-agent/corpus-agent/artifact/store/mem"
)

func open(t *testing.T) hostkey.Key {
	t.Helper()
	key, damaged, err := hostkey.Open(filepath.Join(t.TempDir(), "host.key"))
	if err != nil || damaged != nil {
		t.Fatal(err, damaged)
	}
	return key
}

// TestHostKeyIsPersistent checks that the key does not change, that only its owner can read it, and that a
// damaged file is set aside.
func TestHostKeyIsPersistent(t *testing.T) {
	file := filepath.Join(t.TempDir(), "host.key")
	first, _, err := hostkey.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(file)
	if err != nil || info.Mode() != 0o600 {
		t.Fatalf("mode %v, %v", info.Mode(), err)
	}
	again, damaged, err := hostkey.Open(file)
	if err != nil || damaged != nil || again.Public() != first.Public() {
		t.Fatalf("another key: %v, %v", damaged, err)
	}
	for _, bad := range []string{"", "no key", "ed25519 AAAA\n"} {
		if err := os.WriteFile(file, []byte(bad), 0o600); err != nil {
			t.Fatal(err)
		}
		next, damaged, err := hostkey.Open(file)
		kept, _ := os.ReadFile(file + ".corrupt")
		if err != nil || damaged == nil || next.Public() == first.Public() || string(kept) != bad {
			t.Errorf("%q: %v, %v, kept %q", bad, damaged, err, kept)
		}
	}
}

// TestSealIsBoundToItsKey checks that a seal is valid for one key of an object, and for each byte of the content.
func TestSealIsBoundToItsKey(t *testing.T) {
	key := open(t)
	const place, object = "reports/myapp/h/1.json", `{"host":"h","text":"\",\"signed\":{"}`
	sealed, err := key.Seal(place, []byte(object+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	if by, err := hostkey.Unseal(place, append(sealed, '\n')); err != nil || by != key.Public() {
		t.Errorf("signed by %s, %v", by, err)
	}
	if _, err := hostkey.Unseal("reports/myapp/g/1.json", sealed); err == nil {
		t.Error("the seal is valid for another object")
	}
	if _, err := hostkey.Unseal(place, []byte(object)); !errors.Is(err, hostkey.ErrUnsigned) {
		t.Errorf("an object without a signature: %v", err)
	}
	for i := range sealed {
		other := bytes.Clone(sealed)
		other[i] ^= 1
		if by, err := hostkey.Unseal(place, other); err == nil && by == key.Public() {
			t.Errorf("the seal is valid with byte %d changed: %s", i, other)
		}
	}
	for _, bad := range []string{"", "{}", "[1]", "x"} {
		if _, err := key.Seal(place, []byte(bad)); err == nil {
			t.Errorf("%q was signed", bad)
		}
	}
}

// FuzzUnseal checks that Unseal does not panic, and accepts only sealed content.
func FuzzUnseal(f *testing.F) {
	key, _, err := hostkey.Open(filepath.Join(f.TempDir(), "host.key"))
	if err != nil {
		f.Fatal(err)
	}
	sealed, err := key.Seal("p", []byte(`{"a":1}`))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(sealed)
	f.Add([]byte(`,"signed":{`))
	f.Add([]byte(`{"a":1,"signed":{"by":"","sig":""}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		by, err := hostkey.Unseal("p", data)
		if err == nil && by == key.Public() && !bytes.Equal(bytes.TrimSpace(data), sealed) &&
			!strings.Contains(string(data), `{"a":1,"signed":`) {
			t.Errorf("%q is accepted", data)
		}
	})
}

// TestFirstKeyOfAHostIsValid checks that the first key is valid until a person removes it.
func TestFirstKeyOfAHostIsValid(t *testing.T) {
	s := mem.New()
	first, second := open(t), open(t)
	for _, k := range []hostkey.Key{first, second, first} {
		if err := k.Register(t.Context(), s, hostkey.Registration{Host: "h", At: time.Now()}); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * time.Millisecond) // the store's clock orders them
	}
	const place = "reports/myapp/h/1.json"
	check := func(k hostkey.Key) (bool, error) {
		t.Helper()
		known, err := hostkey.List(t.Context(), s)
		if err != nil || len(known) != 1 {
			t.Fatal(known, err)
		}
		sealed, err := k.Seal(place, []byte(`{"host":"h"}`))
		if err != nil {
			t.Fatal(err)
		}
		return known.Check("h", place, sealed)
	}
	if signed, err := check(first); !signed || err != nil {
		t.Errorf("the first key is refused: %v", err)
	}
	if signed, err := check(second); signed || err == nil {
		t.Error("the second key is accepted")
	}
	if err := s.Delete(t.Context(), hostkey.Place("h", first.Public())); err != nil {
		t.Fatal(err)
	}
	if signed, err := check(second); !signed || err != nil {
		t.Errorf("after the first key was removed, the second is refused: %v", err)
	}
}

// unconditional is a store that ignores conditions, as some servers do.
type unconditional struct{ store.Store }

func (u unconditional) Put(ctx context.Context, key string, r io.Reader, size int64, _ store.Condition) (store.Info,
	error) {
	return u.Store.Put(ctx, key, r, size, store.Condition{})
}

// TestReregisteredKeyKeepsItsTime also checks a store that ignores conditions.
func TestReregisteredKeyKeepsItsTime(t *testing.T) {
	s, key := unconditional{mem.New()}, open(t)
	var since []time.Time
	for range 2 {
		if err := key.Register(t.Context(), s, hostkey.Registration{Host: "h"}); err != nil {
			t.Fatal(err)
		}
		known, err := hostkey.Of(t.Context(), s, "h")
		if err != nil || len(known) != 1 {
			t.Fatal(known, err)
		}
		since = append(since, known[0].Since)
		time.Sleep(2 * time.Millisecond)
	}
	if !since[0].Equal(since[1]) {
		t.Errorf("the key is registered since %s, and then since %s", since[0], since[1])
	}
}

// TestReportsWithoutAKnownKey checks that such reports count as unsigned, and that reports with an invalid signature,
// or without a signature of a host that has a key, are refused.
func TestReportsWithoutAKnownKey(t *testing.T) {
	key := open(t)
	const place = "reports/myapp/h/1.json"
	sealed, err := key.Seal(place, []byte(`{"host":"h"}`))
	if err != nil {
		t.Fatal(err)
	}
	known := hostkey.Registry{"h": {{Key: key.Public()}}}
	for name, c := range map[string]struct {
		registry hostkey.Registry
		report   []byte
		signed   bool
		counts   bool
	}{
		"unsigned, unknown": {nil, []byte(`{"host":"h"}`), false, true},
		"signed, unknown":   {nil, sealed, false, true},
		"forged, unknown":   {nil, bytes.Replace(sealed, []byte(`"h"`), []byte(`"g"`), 1), false, false},
		"unsigned, known":   {known, []byte(`{"host":"h"}`), false, false},
		"signed, known":     {known, sealed, true, true},
	} {
		signed, err := c.registry.Check("h", place, c.report)
		if signed != c.signed || (err == nil) != c.counts {
			t.Errorf("%s: signed %v, %v", name, signed, err)
		}
	}
}

// TestAHostRegistersOnceADay checks one registration per day for a store, a name and a key.
func TestAHostRegistersOnceADay(t *testing.T) {
	key, file, now := open(t), filepath.Join(t.TempDir(), "registered.json"), time.Now()
	for i, c := range []struct {
		url, host string
		at        time.Time
		asks      bool
	}{
		{"s3://a", "h", now, true},
		{"s3://a", "h", now.Add(23 * time.Hour), false},
		{"s3://a", "h", now.Add(25 * time.Hour), true},
		{"s3://a", "h", now, true}, // a clock that was set back
		{"s3://b", "h", now, true},
		{"s3://b", "g", now, true},
		{"s3://b", "g", now, false},
	} {
		s := mem.New()
		about := hostkey.Registration{Host: c.host, At: c.at}
		if err := key.RegisterDaily(t.Context(), s, c.url, hostkey.ReadAttempts(file), about); err != nil {
			t.Fatal(err)
		}
		known, err := hostkey.List(t.Context(), s)
		if err != nil || (len(known) == 1) != c.asks {
			t.Errorf("%d: the store has %v, %v", i, known, err)
		}
	}
}

// TestKeyThatAnotherMachineRegisteredFirst checks that a host finds out that its key does not count, since another
// machine registered one for its name before, and that this ends at the next run after a person has the other key
// forgotten.
func TestKeyThatAnotherMachineRegisteredFirst(t *testing.T) {
	s, now := mem.New(), time.Now()
	other, _, err := hostkey.Open(filepath.Join(t.TempDir(), "other.key"))
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Register(t.Context(), s, hostkey.Registration{Host: "h", At: now}); err != nil {
		t.Fatal(err)
	}
	time.Sleep(10 * time.Millisecond) // so that the store's times differ
	dir := t.TempDir()
	keyFile, file := filepath.Join(dir, "host.key"), filepath.Join(dir, "registered.json")
	key, _, err := hostkey.Open(keyFile)
	if err != nil {
		t.Fatal(err)
	}
	for hours, want := range []hostkey.Public{other.Public(), other.Public(), ""} {
		if want == "" {
			if err := s.Delete(t.Context(), hostkey.Place("h", other.Public())); err != nil {
				t.Fatal(err)
			}
		}
		about := hostkey.Registration{Host: "h", At: now.Add(time.Duration(hours) * time.Hour)}
		kept := hostkey.ReadAttempts(file)
		if err := key.RegisterDaily(t.Context(), s, "s3://a", kept, about); err != nil {
			t.Fatal(err)
		}
		later, _ := hostkey.Replaced(keyFile, file)
		if got := kept.First(key); got != want || later != want {
			t.Errorf("after %d hours: the first key is %q, and read again %q, want %q", hours, got, later, want)
		}
	}
}
