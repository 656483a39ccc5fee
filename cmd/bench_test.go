package cmd_test

import (
	"crypto/rand"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// measured runs the agent once per iteration, each time after the command line readies, and reports its peak memory and
// the processor time of one run beside its duration.
func measured(b *testing.B, r *reader, readies string, args ...string) {
	b.Helper()
	program, peak := filepath.Join(bin(b), "corpus-agent"), int64(0)
	var busy time.Duration
	runs := 0
	for b.Loop() {
		if readies != "" {
			b.StopTimer()
			r.must(readies)
			b.StartTimer()
		}
		cmd := exec.Command(program, args...)
		if r != nil {
			cmd.Dir, cmd.Env = r.dir, append(r.env, "CORPUS_STORE="+r.store)
		}
		if out, err := cmd.CombinedOutput(); err != nil {
			b.Fatalf("corpus-agent %s: %v\n%s", strings.Join(args, " "), err, out)
		}
		peak = max(peak, cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
		busy += cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime()
		runs++
	}
	b.ReportMetric(busy.Seconds()*1000/float64(runs), "cpu-ms/op")
	b.ReportMetric(float64(peak)/1024, "peak-MiB")
}

// BenchmarkVersion measures the start of the program; the target is at most 10 ms.
func BenchmarkVersion(b *testing.B) { measured(b, nil, "", "version") }

// BenchmarkCall measures a function call beyond its own work; the target is at most 10 ms.
func BenchmarkCall(b *testing.B) { measured(b, nil, "", "call", "test.ping") }

// BenchmarkNothingNew measures a run of the timer without a change; the target is at most 100 ms and 40 MiB.
func BenchmarkNothingNew(b *testing.B) {
	r := newReader(b)
	r.prepare()
	r.must("corpus-agent deploy")
	measured(b, r, "", "deploy")
}

// BenchmarkDeploy fetches, verifies and unpacks artifacts of two sizes; its peak memory must not
// depend on the size.
func BenchmarkDeploy(b *testing.B) {
	for name, size := range map[string]int64{"10MB": 10 << 20, "1GB": 1 << 30} {
		b.Run(name, func(b *testing.B) {
			r := newReader(b)
			r.prepare()
			large, err := os.Create(filepath.Join(r.dir, "next/large"))
			if err == nil {
				_, err = io.CopyN(large, rand.Reader, size)
			}
			if err != nil {
				b.Fatal(err)
			}
			_ = large.Close()
			r.must("corpus build ./next -o large.tar.zst", "corpus publish myapp 2 large.tar.zst --channel testing",
				"cp -a root fresh")
			b.SetBytes(size)
			measured(b, r, "chmod -R u+w root && rm -rf root && cp -a fresh root", "deploy")
		})
	}
}
