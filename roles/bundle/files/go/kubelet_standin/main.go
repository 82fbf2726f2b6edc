// A stand-in for the kubelet's side of the device plugin protocol. It accepts one plugin, reads its devices, allocates one
// of them, prints what it received as one JSON object, and exits. `gpu-proof` uses it where no kubelet runs.
//
// Protocol: https://kubernetes.io/docs/concepts/extend-kubernetes/compute-storage-net/device-plugins/
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	pluginapi "k8s.io/kubelet/pkg/apis/deviceplugin/v1beta1"
)

// Report is the output. Allocation is what a container with one device gets.
type Report struct {
	Resource   string                               `json:"resource"`
	Version    string                               `json:"version"`
	Devices    []*pluginapi.Device                  `json:"devices"`
	Allocated  string                               `json:"allocated"`
	Allocation *pluginapi.ContainerAllocateResponse `json:"allocation"`
}

type registry struct {
	pluginapi.UnimplementedRegistrationServer
	requests chan *pluginapi.RegisterRequest
}

// Register accepts the first plugin; others wait until their own deadline.
func (r *registry) Register(_ context.Context, request *pluginapi.RegisterRequest) (*pluginapi.Empty, error) {
	r.requests <- request
	return &pluginapi.Empty{}, nil
}

// examine reads the devices of a plugin until it offers one, and allocates the first healthy one.
func examine(ctx context.Context, folder string, request *pluginapi.RegisterRequest) (*Report, error) {
	// A plugin gives the name of its socket, never a path.
	address := "unix://" + filepath.Join(folder, filepath.Base(request.Endpoint))
	connection, err := grpc.NewClient(address, grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		return nil, err
	}
	defer connection.Close()
	plugin := pluginapi.NewDevicePluginClient(connection)
	stream, err := plugin.ListAndWatch(ctx, &pluginapi.Empty{})
	if err != nil {
		return nil, fmt.Errorf("list: %w", err)
	}
	report := &Report{Resource: request.ResourceName, Version: request.Version}
	for len(report.Devices) == 0 {
		list, err := stream.Recv()
		if err != nil {
			return nil, fmt.Errorf("list: %w", err)
		}
		report.Devices = list.Devices
	}
	for _, device := range report.Devices {
		if device.Health == pluginapi.Healthy {
			report.Allocated = device.ID
			break
		}
	}
	if report.Allocated == "" {
		return report, nil
	}
	answer, err := plugin.Allocate(ctx, &pluginapi.AllocateRequest{
		ContainerRequests: []*pluginapi.ContainerAllocateRequest{{DevicesIds: []string{report.Allocated}}},
	})
	if err != nil {
		return nil, fmt.Errorf("allocate %s: %w", report.Allocated, err)
	}
	if len(answer.ContainerResponses) == 1 {
		report.Allocation = answer.ContainerResponses[0]
	}
	return report, nil
}

func run(socket string, limit time.Duration) error {
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	listener, err := net.Listen("unix", socket)
	if err != nil {
		return err
	}
	plugins := &registry{requests: make(chan *pluginapi.RegisterRequest, 1)}
	server := grpc.NewServer()
	pluginapi.RegisterRegistrationServer(server, plugins)
	go server.Serve(listener)
	defer server.Stop()
	select {
	case request := <-plugins.requests:
		report, err := examine(ctx, filepath.Dir(socket), request)
		if err != nil {
			return err
		}
		return json.NewEncoder(os.Stdout).Encode(report)
	case <-ctx.Done():
		return fmt.Errorf("no plugin registered within %s", limit)
	}
}

func main() {
	socket := flag.String("socket", pluginapi.KubeletSocket, "socket on which plugins register")
	limit := flag.Duration("timeout", time.Minute, "limit for everything")
	flag.Parse()
	if err := run(*socket, *limit); err != nil {
		fmt.Fprintln(os.Stderr, "kubelet-standin:", err)
		os.Exit(1)
	}
}
