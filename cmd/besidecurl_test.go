//go:build peers

package cmd_test

import (
	"bufio"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"text/tabwriter"
	"time"

	"github.com/corpus-agent/corpus-agent/artifact/store/storetest/minioserver"
)

// shape describes the content of an artifact.
type shape struct {
	name  string
	files int
	write func(dir string) error
}

// benchTree is the environment variable of a child process that writes a tree, with its shape and its directory. A
// program includes the peak memory of the process that starts it in its own, so this process must stay small.
const benchTree = "CORPUS_BENCH_TREE"

// shapes returns the two extremes: few large files, whose bytes dominate, and many small ones, whose system calls
// dominate.
func shapes() []shape {
	return []shape{
		{"1 GB, 16 files", 16, func(dir string) error { return writeFiles(dir, 16, 1, 88<<20, 0.5) }},
		{"30,000 files", 30_000, func(dir string) error { return writeFiles(dir, 30_000, 20, 0, 0.02) }},
	}
}

// writeFiles makes a tree of count files, perDir in each directory. A size of 0 means sizes like those in source trees.
// noisy is the part of the content that cannot be compressed.
func writeFiles(dir string, count, perDir, size int, noisy float64) error {
	random := rand.New(rand.NewPCG(1, 1))
	words := words(random)
	for i := range count {
		name := filepath.Join(dir, fmt.Sprintf("part%02d/module%04d/file%05d.txt", i/perDir/40, i/perDir, i))
		length := size
		if length == 0 {
			// Half of the files have less than 4 KB, few more than 100.
			length = min(400+int(random.ExpFloat64()*random.ExpFloat64()*10_000), 400_000)
		}
		if err := writeFile(name, length, noisy, words, random); err != nil {
			return err
		}
	}
	return nil
}

func words(random *rand.Rand) []string {
	all := make([]string, 4000)
	for i := range all {
		word := make([]byte, 2+random.IntN(9))
		for j := range word {
			word[j] = 'a' + byte(random.IntN(26))
		}
		all[i] = string(word)
	}
	return all
}

func writeFile(name string, length int, noisy float64, words []string, random *rand.Rand) error {
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		return err
	}
	file, err := os.Create(name)
	if err != nil {
		return err
	}
	out := bufio.NewWriterSize(file, 1<<20)
	for done := 0; done < length; {
		var piece []byte
		if random.Float64() < noisy {
			piece = make([]byte, 4096)
			for j := 0; j < len(piece); j += 8 {
				binary.LittleEndian.PutUint64(piece[j:], random.Uint64())
			}
		} else {
			for len(piece) < 4096 {
				// Some words are much more frequent than others.
				piece = append(piece, words[int(float64(len(words))*random.Float64()*random.Float64()*random.Float64())]...)
				piece = append(piece, " \n"[random.IntN(16)/15])
			}
		}
		piece = piece[:min(len(piece), length-done)]
		if _, err := out.Write(piece); err != nil {
			return err
		}
		done += len(piece)
	}
	if err := out.Flush(); err != nil {
		return err
	}
	return file.Close()
}

// spent has the resources used by one run.
type spent struct {
	wall, cpu time.Duration
	peak      int64 // KiB
}

func (s spent) String() string {
	return fmt.Sprintf("%.2f s, %.2f s of the processor", s.wall.Seconds(), s.cpu.Seconds())
}

// TestFetchBesideCurl measures a first deploy from MinIO beside `curl | tar --zstd -x` and a sync of the same
// filesystem, alternately. The deploy includes everything that a host verifies, and its own start. CORPUS_BENCH_ROUNDS
// is the number of rounds; TMPDIR selects the disk.
func TestFetchBesideCurl(t *testing.T) {
	if number, dir, ok := strings.Cut(os.Getenv(benchTree), ":"); ok {
		n, err := strconv.Atoi(number)
		if err == nil {
			err = shapes()[n].write(dir)
		}
		if err != nil {
			t.Fatal(err)
		}
		return
	}
	rounds := 5
	if n, err := strconv.Atoi(os.Getenv("CORPUS_BENCH_ROUNDS")); err == nil {
		rounds = max(n, 1)
	}
	server := minioserver.New(t)
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w,
		"artifact\tcorpus-agent: clock\tprocessor\tpeak\tcurl, tar, sync: clock\tprocessor\tratios of clock, processor")
	for i, s := range shapes() {
		size, ours, theirs := compareWithCurl(t, server, i, rounds)
		fmt.Fprintf(w, "%s (%.0f MB)\t%.2f s\t%.2f s\t%.0f MiB\t%.2f s\t%.2f s\t%.2f, %.2f\n", s.name, float64(size)/1e6,
			ours.wall.Seconds(), ours.cpu.Seconds(), float64(ours.peak)/1024, theirs.wall.Seconds(), theirs.cpu.Seconds(),
			ours.wall.Seconds()/theirs.wall.Seconds(), ours.cpu.Seconds()/theirs.cpu.Seconds())
		if ours.peak > 96<<10 { // of which frames in memory take 32 MiB
			t.Errorf("%s: the agent's peak is %d KiB, want 96 MiB at most", s.name, ours.peak)
		}
	}
	_ = w.Flush()
	load, _ := os.ReadFile("/proc/loadavg")
	fmt.Printf("%d rounds each, the middle one; load %s%s", rounds, load, b.String())
}

// compareWithCurl measures one shape. With many files, the unpacked trees stay until the end: ext4 skips the inodes of
// recently deleted files one by one.
func compareWithCurl(t *testing.T, server *minioserver.Server, number, rounds int) (size int64, ours, theirs spent) {
	r, s, prefix := newReader(t), shapes()[number], fmt.Sprint("shape", number)
	r.store = server.MinioURL(prefix)
	r.must(fmt.Sprintf("%s=%d:%s/tree '%s' -test.run '^TestFetchBesideCurl$'", benchTree, number, r.dir, os.Args[0]),
		"corpus keys new", "corpus store init", "corpus build ./tree -o myapp.tar.zst",
		"corpus publish myapp 1 myapp.tar.zst --channel testing")
	info, err := os.Stat(filepath.Join(r.dir, "myapp.tar.zst"))
	if err != nil {
		t.Fatal(err)
	}
	object := "http://" + server.Host + "/" + minioserver.Bucket + "/" + prefix + "/deploy/myapp/" +
		strings.TrimSpace(r.must("sha256sum <myapp.tar.zst | cut -d' ' -f1")) + ".1.tar.zst"
	aside := "mkdir old.$$ && mv root/srv root/var tar old.$$"
	if s.files < 1000 {
		aside += " && chmod -R u+w old.$$ && rm -r old.$$"
	}
	var agent, curl []spent
	for range rounds {
		agent = append(agent, timed(t, r, "corpus-agent", "deploy", "--trust-root", "root.json"))
		if got := strings.TrimSpace(r.must("find root/srv/service/current/ -type f | wc -l")); got != strconv.Itoa(s.files) {
			t.Errorf("the release has %s files, want %d", got, s.files)
		}
		curl = append(curl,
			timed(t, r, "bash", "-c",
				`set -o pipefail; mkdir tar && curl -fsS --aws-sigv4 aws:amz:us-east-1:s3 --user `+
					`"$AWS_ACCESS_KEY_ID:$AWS_SECRET_ACCESS_KEY" `+object+` | tar --zstd -x -C tar && sync -f tar`))
		r.must(aside)
	}
	for i := range rounds {
		t.Logf("%s: corpus-agent %s; curl %s", s.name, agent[i], curl[i])
	}
	return info.Size(), middle(agent), middle(curl)
}

// timed runs a program after all data of others was written to the disk.
func timed(t *testing.T, r *reader, program string, args ...string) spent {
	syscall.Sync()
	if program == "corpus-agent" {
		program = filepath.Join(bin(t), program)
	}
	cmd := exec.Command(program, args...)
	cmd.Dir, cmd.Env = r.dir, append(r.env, "CORPUS_STORE="+r.store)
	start := time.Now()
	out, err := cmd.CombinedOutput()
	wall := time.Since(start)
	if err != nil {
		t.Fatalf("%s %s: %v\n%s", program, strings.Join(args, " "), err, out)
	}
	usage := cmd.ProcessState.SysUsage().(*syscall.Rusage)
	return spent{wall, cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), usage.Maxrss}
}

// middle returns the median of the times and the maximum of the memory.
func middle(runs []spent) spent {
	var walls, cpus []time.Duration
	var m spent
	for _, r := range runs {
		walls, cpus = append(walls, r.wall), append(cpus, r.cpu)
		m.peak = max(m.peak, r.peak)
	}
	slices.Sort(walls)
	slices.Sort(cpus)
	m.wall, m.cpu = walls[len(walls)/2], cpus[len(cpus)/2]
	return m
}
