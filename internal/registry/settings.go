package registry

// CreateService is a durable command: it makes a service by hand, which then
// stays when it is empty. It refuses when the service exists.
type CreateService struct {
	Meta
	Service ServiceKey  `json:"service"`
	Info    ServiceInfo `json:"info"`
	// Adopt gives an existing service these settings instead of refusing, unless
	// somebody made it by hand.
	Adopt bool `json:"adopt,omitempty"`
}

func (c *CreateService) apply(s *Store) (Result, error) {
	sh := s.shard(c.Service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	info := c.Info
	info.Set = true
	svc := sh.services[c.Service]
	switch {
	case svc == nil:
		svc = s.newService(sh, c.Service, &info, c.Meta)
	case svc.durable || !c.Adopt:
		return Result{}, Refuse(ServiceExists, "serviceName", svc.grouped,
			"specified service already exists, serviceName : %s", svc.grouped)
	default:
		s.setInfo(svc, &info, c.Meta)
	}
	svc.durable = true
	return Result{}, nil
}

// UpdateService is a durable command: it replaces the settings of a service.
type UpdateService struct {
	Meta
	Service ServiceKey  `json:"service"`
	Info    ServiceInfo `json:"info"`
}

func (c *UpdateService) apply(s *Store) (Result, error) {
	sh := s.shard(c.Service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	svc := sh.services[c.Service]
	info := c.Info
	info.Set = true
	if svc == nil {
		// The service was there when the command was proposed, or it is being
		// replayed before its ephemeral instances are back.
		svc = s.newService(sh, c.Service, &info, c.Meta)
	} else {
		s.setInfo(svc, &info, c.Meta)
	}
	svc.durable = true
	return Result{}, nil
}

func (s *Store) setInfo(svc *service, info *ServiceInfo, m Meta) {
	svc.info = info
	s.emit(&Event{Kind: ServiceUpdated, At: m.At, Cause: m.Cause, Service: svc.key, Revision: svc.changed(m.At)})
}

// DeleteService is a durable command: a service goes, with all that is in it.
type DeleteService struct {
	Meta
	Service ServiceKey `json:"service"`
	// IfEmpty refuses when the service has instances.
	IfEmpty bool `json:"ifEmpty,omitempty"`
}

func (c *DeleteService) apply(s *Store) (Result, error) {
	sh := s.shard(c.Service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	svc := sh.services[c.Service]
	if svc == nil {
		return Result{}, Refuse(ServiceNotFound, "serviceName", c.Service.Grouped(),
			"specified service not exist, serviceName : %s", c.Service.Grouped())
	}
	if c.IfEmpty && len(svc.records) > 0 {
		return Result{}, Refuse(ServiceNotEmpty, "serviceName", svc.grouped,
			"service %s is not empty, can't be delete. Please unregister instance first", svc.grouped)
	}
	delete(sh.overlays, svc.key)
	s.dropService(sh, svc, c.Meta)
	return Result{}, nil
}

// SetCluster is a durable command: it sets a cluster's probe and metadata. The
// cluster comes into being when it is not there.
type SetCluster struct {
	Meta
	Service ServiceKey `json:"service"`
	Cluster Cluster    `json:"cluster"`
}

func (c *SetCluster) apply(s *Store) (Result, error) {
	sh := s.shard(c.Service)
	sh.mu.Lock()
	defer sh.mu.Unlock()
	svc := sh.services[c.Service]
	if svc == nil {
		svc = s.newService(sh, c.Service, &ServiceInfo{Selector: Selector{Type: SelectorNone}}, c.Meta)
	}
	cluster := c.Cluster
	svc.setCluster(&cluster)
	svc.durable = true
	s.emit(&Event{
		Kind: ClusterUpdated, At: c.At, Cause: c.Cause, Service: svc.key,
		Revision: svc.changed(c.At), Detail: cluster.Name,
	})
	return Result{}, nil
}
