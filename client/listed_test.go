package rollcall

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/rollcall-registry/rollcall/api/grpcv2"
)

// TestListsOneAfterTheOther reads lists that hosts join, leave and change in, in any
// order: each is what it would be if none had been before, and what is equal is the same
// pointer.
func TestListsOneAfterTheOther(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	var before listed
	var hosts []string
	for n := range 500 {
		hosts = mutate(random, hosts)
		raw := []byte(`{"hosts":[` + strings.Join(hosts, ",") + `]}`)
		var info grpcv2.ServiceInfo
		got, err := readInstances(raw, &info, before)
		if err != nil {
			t.Fatal(err)
		}
		want, err := readInstances(raw, &info, listed{})
		if err != nil {
			t.Fatal(err)
		}
		if !slices.EqualFunc(got.instances, want.instances, (*Instance).Equal) || !slices.Equal(got.places, want.places) {
			t.Fatalf("list %d: %s\ngot  %v %v\nwant %v %v", n, raw, texts(got), got.places, texts(want), want.places)
		}
		if !slices.IsSortedFunc(got.instances, compare) {
			t.Fatalf("list %d: not sorted: %v", n, texts(got))
		}
		for _, in := range got.instances {
			for _, was := range before.instances {
				if in != was && in.Equal(was) {
					t.Fatalf("list %d: %s is kept twice", n, in.Addr())
				}
			}
		}
		before = got
	}
}

// mutate changes a list of hosts a little.
func mutate(random *rand.Rand, hosts []string) []string {
	hosts = slices.Clone(hosts)
	host := func() string {
		return fmt.Sprintf(`{"ip":"h%d","port":%d,"weight":%d,"metadata":{"v":"%d"},"clusterName":"%s"}`,
			random.IntN(9), 1+random.IntN(3), random.IntN(2), random.IntN(2), []string{"", "DEFAULT", "b"}[random.IntN(3)])
	}
	switch at := random.IntN(len(hosts) + 1); random.IntN(6) {
	case 0, 1:
		return slices.Insert(hosts, at, host())
	case 2:
		if at < len(hosts) {
			return slices.Delete(hosts, at, at+1)
		}
	case 3:
		if at < len(hosts) {
			hosts[at] = host()
		}
	case 4:
		random.Shuffle(len(hosts), func(i, j int) { hosts[i], hosts[j] = hosts[j], hosts[i] })
	}
	return hosts
}

func texts(l listed) (all []string) {
	for _, in := range l.instances {
		all = append(all, fmt.Sprintf("%s@%s=%v%v", in.Addr(), in.Cluster, in.Weight, in.Metadata))
	}
	return all
}

// Instances with the same metadata share it, and one that changes keeps its own.
func TestMetadataIsShared(t *testing.T) {
	const host = `{"ip":"h%d","port":1,"weight":%d,"metadata":{"zone":"a"}}`
	var info grpcv2.ServiceInfo
	read := func(before listed, weight int) listed {
		l, err := readInstances(fmt.Appendf(nil, `{"hosts":[`+host+`,`+host+`]}`, 1, weight, 2, weight), &info, before)
		if err != nil {
			t.Fatal(err)
		}
		return l
	}
	first := read(listed{}, 1)
	if n := testing.AllocsPerRun(10, func() { read(first, 1) }); n > 20 {
		t.Errorf("%v allocations for what has not changed", n)
	}
	second := read(first, 2)
	for n, in := range second.instances {
		in.Metadata["probe"] = fmt.Sprint(n)
	}
	if got := first.instances[0].Metadata["probe"]; got != "1" {
		t.Errorf("four instances have metadata of their own: %q", got)
	}
}
