"""What people write: the yardsticks that calibrant's own steps are measured against.

Both pad every text to the maximum length, use torch's Adam as it comes and run the model as transformers does
(``SplitModel``'s own call would take its shortcut through the last layer).
"""

import torch
from torch.nn.functional import cross_entropy

from calibrant.models.split import SplitModel
from calibrant.objectives.functional import kl_divergence, negative_entropy
from calibrant.objectives.manifold import interpolate_labels

DELTA_ON, DELTA_OFF, DELTA_Y = 1e-4, 1e-3, 0.1


def fine_tuning(model, optimizer, ids, mask, labels):
    """(a) One step of plain fine-tuning."""
    model.train()
    optimizer.zero_grad()
    loss = cross_entropy(model(input_ids=ids, attention_mask=mask).logits, labels)
    loss.backward()
    optimizer.step()
    return loss.item()


def algorithm_1(model, optimizer, ids, mask, labels):
    """(b) One step of the paper's Algorithm 1: separate passes, a full backward for each sample set."""
    split = SplitModel(model)

    def logits(x):
        return model(inputs_embeds=x, attention_mask=mask).logits

    model.eval()
    x = split.embed(ids).detach()
    partners = torch.randperm(len(ids))

    with torch.no_grad():
        target = split.features(split.encode(x[partners], mask[partners]), mask[partners])
    on = (x + torch.empty_like(x).uniform_(-DELTA_ON, DELTA_ON)).requires_grad_()
    features = split.features(split.encode(on, mask), mask)
    (1 - torch.cosine_similarity(features, target)).sum().backward()
    on = torch.clamp(on.detach() - DELTA_ON * on.grad.sign(), x - DELTA_ON, x + DELTA_ON)
    model.zero_grad()

    off = (x + torch.empty_like(x).uniform_(-DELTA_OFF, DELTA_OFF)).requires_grad_()
    cross_entropy(logits(off), labels).backward()
    off = torch.clamp(off.detach() + DELTA_OFF * off.grad.sign(), x - DELTA_OFF, x + DELTA_OFF)

    model.train()
    optimizer.zero_grad()
    ce = cross_entropy(model(input_ids=ids, attention_mask=mask).logits, labels)
    y = interpolate_labels(labels, labels[partners], model.config.num_labels, DELTA_Y)
    r_on = kl_divergence(y, logits(on)).mean()
    r_off = negative_entropy(logits(off)).mean()
    loss = ce + r_on + r_off
    loss.backward()
    optimizer.step()
    return loss.item()
