"""``rmqctl lag report``: the lag over one or many stores."""
